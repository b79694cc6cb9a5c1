"""Experiments on the command line: a TOML file, or an `Experiment` of a Python file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprag.errors import ExperimentError, InputFileError, OpragError
from oprag.masking import describe, reason

if TYPE_CHECKING:
    from oprag.compare.spec.experiment import Experiment

__all__ = ["read_experiment"]


def read_experiment(given: str, changes: Mapping[str, Any] | None = None) -> tuple[Experiment, Path]:
    """Read an experiment.

    Args:
        given: A TOML file, or PYTHON_FILE:NAME, which runs the file and takes its variable.
        changes: Values that override those of the experiment; mappings are merged key by key.

    Returns:
        The experiment, and the path of its file.

    Raises:
        InputFileError: The file is missing.
        ExperimentError: The Python file fails, or the variable is not an experiment; or as for `Experiment.from_file`.
    """
    from oprag.compare.spec.experiment import Experiment

    file, _, name = given.rpartition(":")
    if given.endswith(".py"):
        raise ExperimentError(f"name the variable with the experiment, such as {given}:experiment", given)
    path = Path(file if file.endswith(".py") else given)
    experiment = getattr(_module(path), name, None) if file.endswith(".py") else Experiment.from_file(path)
    if not isinstance(experiment, Experiment):
        raise ExperimentError(f"{file} has no Experiment named {name!r}, got {describe(experiment)}", experiment)
    changed = {
        key: {**getattr(experiment, key).model_dump(), **value} if isinstance(value, Mapping) else value
        for key, value in (changes or {}).items()
    }
    return experiment.replace(**changed), path


def _module(path: Path) -> Any:
    """Run a Python file as the module of its name, as `import` in its folder would."""
    if not path.is_file():
        raise InputFileError(f"file not found: {path}", str(path))
    sys.path.insert(0, str(path.parent.resolve()))
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ExperimentError(f"{path} cannot be imported", str(path))
    # Registered, so that its functions have the same name in every process.
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OpragError:
        raise
    except Exception as error:
        raise ExperimentError(f"{path} cannot be imported: {reason(error)}", str(path)) from error
    return module
