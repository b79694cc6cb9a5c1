"""Which parts of an experiment can be pickled for another process."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError

__all__ = ["as_pickle", "check_sendable"]


class _Pickler(pickle.Pickler):
    """Refuses what another process cannot import: the program that was started is not run again there."""

    def reducer_override(self, value: Any) -> Any:
        """Functions and classes are pickled by their names."""
        name = getattr(value, "__qualname__", None)
        if name is not None and getattr(value, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{name} is in the program that was started, and not in a module")
        return NotImplemented


def as_pickle(value: Any) -> bytes:
    """A pickle that a process of another program can read."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def check_sendable(experiment: Experiment, dumps: Callable[[Any], bytes] = as_pickle) -> None:
    """Refuse an experiment that cannot be pickled, naming the part."""
    parts: dict[str, Any] = {}
    for noun, given in (("model", experiment.models), ("embedder", experiment.embedders), ("store", experiment.stores)):
        parts |= {f"the {noun} {name!r}": one for name, one in given.items()}
    parts |= {
        f"the metric {name!r}": one for name, one in zip(experiment.metric_names, experiment.metrics, strict=True)
    }
    parts |= {
        "the score embedder": experiment.score_embedder,
        "count_tokens": experiment.count_tokens,
        "a prompt": experiment.prompts,
        "the experiment": experiment,
    }
    for what, part in parts.items():
        try:
            dumps(part)
        except Exception as error:
            raise ExperimentError(
                f"{what} cannot be sent to another process: {error}; give it by name, as MODULE:FUNCTION of a module "
                "that every process can import",
                getattr(part, "use", part),
            ) from error
