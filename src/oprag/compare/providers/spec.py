"""The specification of a model or embedder in an experiment: its name and settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from oprag.compare.providers.endpoints import addresses_of, is_local, provider_of
from oprag.compare.providers.names import LOCAL, find_function
from oprag.compare.validation import PydanticCustomError, StrictModel, Text, model_validator
from oprag.errors import ExperimentError
from oprag.token_counters import HUGGINGFACE

__all__ = ["ProviderSpec", "with_name"]


def with_name(given: Any, name: str) -> Any:
    """A model or embedder specification; its name defaults to the name in the experiment."""
    if isinstance(given, ProviderSpec):
        return given
    return {"name": name, **(given if isinstance(given, Mapping) else {"use": given})}


class ProviderSpec(StrictModel, extra="allow"):
    """The specification of a model or embedder: the model to use, its name, and all other keys as its settings."""

    use: Any
    name: Text | None = None
    api_key_env: Text | None = None

    _providers: ClassVar[frozenset[str]] = frozenset()
    # Prefixes (before the colon) of names of models in files or on the hub.
    _files: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """Convert a name or an object to a mapping with the key `use`."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            return {"use": given}
        if "use" not in given:
            raise PydanticCustomError("use", 'must contain the key use, such as use = "local"')
        return dict(given)

    def model_post_init(self, context: Any, /) -> None:
        """Reject keys that would have no effect."""
        super().model_post_init(context)
        if self.api_key_env is not None and provider_of(self.use) not in self._providers - {HUGGINGFACE}:
            raise ExperimentError("api_key_env is only valid with PROVIDER:MODEL", self.api_key_env)
        if self.settings and not isinstance(self.use, str):
            kind = type(self.use).__name__
            raise ExperimentError(
                f"settings are only valid for a name, got {', '.join(self.settings)}; set them on the {kind} instead",
                self.use,
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the model or embedder."""
        return self.model_extra or {}

    @property
    def addresses(self) -> list[str]:
        """The addresses in the settings, except those on the provider's own host."""
        return addresses_of(self.settings, provider_of(self.use, self.settings))

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function, if `use` is MODULE:FUNCTION and can be imported."""
        return find_function(self.use, self._providers)

    @property
    def may_cost(self) -> bool:
        """Whether calls may cost money: True for PROVIDER:MODEL unless known to run on this machine."""
        kind, _, model = self.use.partition(":") if isinstance(self.use, str) else (LOCAL, "", "")
        if kind in {LOCAL, *self._files} or self.function is not None:
            return False
        if self.addresses:
            return not all(map(is_local, self.addresses))
        # Ollama runs models on this machine, except its cloud models.
        return provider_of(self.use, self.settings) != "ollama" or model.endswith("cloud")

    @property
    def spec_hash(self) -> str:
        """A hash of the specification; empty for "local" and for an object."""
        return "" if not isinstance(self.use, str) or self.use == LOCAL else self._hash()

    def _hash(self) -> str:
        raise NotImplementedError

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # Without the settings, which may contain secrets.
        return ((name, getattr(self, name)) for name in type(self).model_fields)
