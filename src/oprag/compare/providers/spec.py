"""What an experiment says about a model or an embedder: what to use, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from oprag.compare.providers.endpoints import addresses_of, provider_of
from oprag.compare.providers.names import LOCAL
from oprag.compare.spec.validation import StrictModel, Text, validated
from oprag.errors import ExperimentError

__all__ = ["ProviderSpec"]


class ProviderSpec(StrictModel, extra="allow"):
    """What to use, its own name, and its settings: all other keys, with whatever values."""

    use: Any
    name: Text | None = None
    api_key_env: Text | None = None

    _key_providers: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def of(cls, given: Any, name: str | None = None, *, place: str) -> Self:
        """What is given in an experiment: a spec, a table with `use` and settings, or what to use.

        Raises:
            ExperimentError: It does not say what to use, or is invalid; the message begins with the place.
        """
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            given = {"use": given}
        elif not isinstance(given.get("use"), str):
            raise ExperimentError(f'{place} must say what to use, such as use = "{LOCAL}"', given)
        return validated(cls, {"name": name, **given}, place=place)

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of what is used."""
        return self.model_extra or {}

    @property
    def addresses(self) -> list[str]:
        """The addresses in its settings, other than the provider's own."""
        return addresses_of(self.settings, provider_of(self.use, self.settings))

    @property
    def spec_hash(self) -> str:
        """A hash of what is said; empty for the packaged one, and for an object."""
        return "" if not isinstance(self.use, str) or self.use == LOCAL else self._hash()

    def _hash(self) -> str:
        raise NotImplementedError

    def model_post_init(self, context: Any, /) -> None:
        """Refuse a variable for a key that nothing would read."""
        super().model_post_init(context)
        if self.api_key_env is not None and provider_of(self.use) not in self._key_providers:
            raise ExperimentError("api_key_env goes with PROVIDER:MODEL", self.api_key_env)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # Without the settings, which may be secrets.
        return ((name, getattr(self, name)) for name in type(self).model_fields)
