"""Opening a results file to read from it, and finding what belongs to an experiment in it."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oprag.compare.results_file import ResultsFile
from oprag.compare.schema import RESULTS
from oprag.errors import ExperimentError, ResultsFileError
from oprag.files.database import Database
from oprag.text_table import shortened

__all__ = ["OF_EXPERIMENT", "experiment_row", "opened_database", "rows_of_answers"]

_NAMES, _LONGEST_NAME = 20, 80  # in a message

OF_EXPERIMENT = (
    "JOIN experiment_cells ON experiment_cells.cell = answers.cell AND experiment_cells.experiment = ? "
    "JOIN experiment_questions ON experiment_questions.question = answers.question "
    "AND experiment_questions.experiment = experiment_cells.experiment"
)
"""What leaves the answers of an experiment, by its number: others may have asked the same cells other questions."""


def opened_database(file: ResultsFile | str | os.PathLike[str]) -> Database:
    """The database of a results file, to read from; a `ResultsFileError` where there is none."""
    path = file.path if isinstance(file, ResultsFile) else Path(file)
    if not path.is_file():  # to open it would make it
        raise ResultsFileError(f"there is no results file {path}", path)
    if not path.stat().st_size:  # and to open it would make it one
        raise ResultsFileError(f"{path} is empty, and so no results file", path)
    return Database(path, RESULTS)


def experiment_row(connection: sqlite3.Connection, path: Path, name: str | None) -> tuple[int, str, Mapping[str, Any]]:
    """The number, the name and the description of an experiment in a results file.

    Raises:
        ExperimentError: There is no such experiment in it, or several where none is named.
    """
    rows = connection.execute("SELECT id, name, described FROM experiments ORDER BY id").fetchall()
    found = [row for row in rows if name is None or row[1] == name]
    if len(found) != 1:
        what = f"no experiment {name!r}" if name is not None else "no experiment" if not rows else "several experiments"
        names = [shortened(row[1], _LONGEST_NAME) for row in rows]
        known = f"; there are: {', '.join(names[:_NAMES])}{', …' if len(names) > _NAMES else ''}" if names else ""
        raise ExperimentError(f"{path} has {what}{known}", name)
    number, name, described = found[0]
    return int(number), str(name), json.loads(described)


def rows_of_answers(
    file: ResultsFile | str | os.PathLike[str], experiment: str, columns: str, rest: str, *values: Any
) -> list[tuple[Any, ...]]:
    """Rows about the answers of an experiment; those to the questions of others play no part.

    Args:
        file: The results file.
        experiment: The name of the experiment.
        columns: What is wanted, as SQL.
        rest: What stands behind the table of answers, as SQL.
        values: The values of its question marks.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    database = opened_database(file)
    with database.reading() as connection:
        number, _, _ = experiment_row(connection, database.path, experiment)
        query = f"SELECT {columns} FROM answers {OF_EXPERIMENT} {rest}"  # noqa: S608
        return connection.execute(query, [number, *values]).fetchall()
