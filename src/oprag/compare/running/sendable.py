"""Check which parts of an experiment can be pickled for another process."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

from oprag.compare.spec.experiment import Experiment
from oprag.errors import ExperimentError

__all__ = ["as_pickle", "check_sendable"]


class _Pickler(pickle.Pickler):
    """Rejects functions and classes of `__main__`, which another process cannot import."""

    def reducer_override(self, value: Any) -> Any:
        """Check functions and classes, which are pickled by name."""
        name = getattr(value, "__qualname__", None)
        if name is not None and getattr(value, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{name} is defined in the main program instead of an importable module")
        return NotImplemented


def as_pickle(value: Any) -> bytes:
    """Pickle a value for a process with another main program."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def check_sendable(experiment: Experiment, dumps: Callable[[Any], bytes] = as_pickle) -> None:
    """Raise an error that names the part of an experiment that cannot be pickled, if any."""
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
                f"{what} cannot be sent to another process: {error}; specify it as MODULE:FUNCTION, in a module that "
                "every process can import",
                getattr(part, "use", part),
            ) from error
