"""What an experiment says about a model or an embedder: what to use, and its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from oprag.compare.providers.endpoints import addresses_of, provider_of
from oprag.compare.providers.names import LOCAL
from oprag.compare.spec.validation import PydanticCustomError, StrictModel, Text, model_validator
from oprag.errors import ExperimentError

__all__ = ["ProviderSpec", "with_name"]


def with_name(given: Any, name: str) -> Any:
    """What is said about a model or an embedder, with its name in the experiment where it has no other."""
    if isinstance(given, ProviderSpec):
        return given
    return {"name": name, **(given if isinstance(given, Mapping) else {"use": given})}


class ProviderSpec(StrictModel, extra="allow"):
    """What to use, its own name, and its settings: all other keys, with whatever values."""

    use: Any
    name: Text | None = None
    api_key_env: Text | None = None

    _key_providers: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """What is not a table is what to use."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            return {"use": given}
        if "use" not in given:
            raise PydanticCustomError("use", 'must say what to use, such as use = "local"')
        return dict(given)

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
