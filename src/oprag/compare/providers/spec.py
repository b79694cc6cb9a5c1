"""The specification of a model or embedder in an experiment: its name and settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oprag.compare.providers.names import LOCAL, is_loopback
from oprag.compare.validation import StrictModel, Text, pydantic
from oprag.errors import ExperimentError

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

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_table(cls, given: Any) -> Any:
        """Convert a name or an object to a mapping with the key `use`."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            return {"use": given}
        if "use" not in given:
            raise ExperimentError('it must contain the key use, such as use = "local"', given)
        return dict(given)

    def model_post_init(self, context: Any, /) -> None:
        """Reject settings that would have no effect."""
        super().model_post_init(context)
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
    def may_cost(self) -> bool:
        """Whether calls may cost money: True for PROVIDER:MODEL unless it runs on this machine."""
        if not isinstance(self.use, str) or self.use == LOCAL:
            return False
        kind, _, model = self.use.partition(":")
        if "base_url" in self.settings:
            return not is_loopback(self.settings["base_url"])
        # Ollama runs models on this machine, except its cloud models.
        return kind not in ("ollama", "huggingface") or model.endswith("cloud")

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # Without the settings, which may contain secrets.
        return ((name, getattr(self, name)) for name in type(self).model_fields)
