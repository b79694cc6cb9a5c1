"""A run from its beginning to its end, as the results file tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from oprag.compare.db.results_file import ResultsFile
from oprag.compare.db.text import named_error
from oprag.compare.opened import Opened, as_opened
from oprag.compare.run_report import versions
from oprag.compare.spec.experiment import Experiment
from oprag.errors import ResultsFileError

__all__ = ["Started", "started"]


class Started:
    """A run that goes on.

    Args:
        experiment: What is run; what is opened already is not opened again.
        path: The results file.

    Attributes:
        opened: The experiment with its models and embedders.
        file: The results file.
        outcome: How the run ends; whoever does the work says so.
    """

    def __init__(self, experiment: Experiment | Opened, path: str | os.PathLike[str]) -> None:
        self._since = time.perf_counter()
        self.opened = as_opened(experiment)
        self.file = ResultsFile(path)
        self.outcome = "interrupted"

    @property
    def seconds(self) -> float:
        """How long it has been going on."""
        return time.perf_counter() - self._since


@contextmanager
def started(experiment: Experiment | Opened, path: str | os.PathLike[str]) -> Iterator[Started]:
    """Begin a run in its file, and write down there how it ended, whatever happens.

    Args:
        experiment: The experiment.
        path: The results file; made where it is missing.

    Raises:
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written.
        MissingExtraError: Something that it needs is not installed.
    """
    run = Started(experiment, path)
    opened, file = run.opened, run.file
    opened.check_scorable()
    file.check()
    file.begin(opened.experiment.name, opened.described(), opened.cell_rows, opened.question_rows, versions())
    try:
        yield run
    except Exception as error:
        run.outcome = named_error(error)
        raise
    finally:
        # Where it cannot be written down, such as on a full disk, what met that first has told it.
        with suppress(ResultsFileError):
            file.end(run.outcome)
        file.close()
