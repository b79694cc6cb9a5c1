"""The specification of a model or an embedder in an experiment: its name and its settings."""

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
    """A model or an embedder as it is given, with its name in the experiment unless it has another one."""
    if isinstance(given, ProviderSpec):
        return given
    return {"name": name, **(given if isinstance(given, Mapping) else {"use": given})}


class ProviderSpec(StrictModel, extra="allow"):
    """A model or an embedder: what to use, its own name, and all other keys as its settings."""

    use: Any
    name: Text | None = None
    api_key_env: Text | None = None

    _providers: ClassVar[frozenset[str]] = frozenset()
    # What names a model in files or in the hub, before a colon.
    _files: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """A table, which a name or an object is put into."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            return {"use": given}
        if "use" not in given:
            raise PydanticCustomError("use", 'must say what to use, such as use = "local"')
        return dict(given)

    def model_post_init(self, context: Any, /) -> None:
        """Refuse what nothing would read."""
        super().model_post_init(context)
        if self.api_key_env is not None and provider_of(self.use) not in self._providers - {HUGGINGFACE}:
            raise ExperimentError("api_key_env goes with PROVIDER:MODEL", self.api_key_env)
        if self.settings and not isinstance(self.use, str):
            kind = type(self.use).__name__
            raise ExperimentError(
                f"settings go with a name, got {', '.join(self.settings)}; set them on the {kind} itself", self.use
            )

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the model or embedder."""
        return self.model_extra or {}

    @property
    def addresses(self) -> list[str]:
        """The addresses in its settings, other than the provider's own."""
        return addresses_of(self.settings, provider_of(self.use, self.settings))

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function that MODULE:FUNCTION means."""
        return find_function(self.use, self._providers)

    @property
    def may_cost(self) -> bool:
        """Whether it is PROVIDER:MODEL that is not known to run on this machine, so that using it may cost money."""
        kind, _, model = self.use.partition(":") if isinstance(self.use, str) else (LOCAL, "", "")
        if kind in {LOCAL, *self._files} or self.function is not None:
            return False
        if self.addresses:
            return not all(map(is_local, self.addresses))
        # Ollama runs its models here, but for those in its cloud.
        return provider_of(self.use, self.settings) != "ollama" or model.endswith("cloud")

    @property
    def spec_hash(self) -> str:
        """A hash of the specification; empty for the packaged one, and for an object."""
        return "" if not isinstance(self.use, str) or self.use == LOCAL else self._hash()

    def _hash(self) -> str:
        raise NotImplementedError

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # Without the settings, which may be secrets.
        return ((name, getattr(self, name)) for name in type(self).model_fields)
