"""What a results file keeps of the contexts of an experiment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from oprag.compare.db.reader import rows_of_answers
from oprag.compare.db.results_file import ResultsFile

__all__ = ["context_columns"]


def context_columns(
    file: ResultsFile | str | os.PathLike[str], experiment: str, columns: str, cells: Sequence[str]
) -> list[tuple[Any, ...]]:
    """A row for each answer that has a context.

    Args:
        file: The results file.
        experiment: The name of the experiment; answers to the questions of others play no part.
        columns: Columns of the tables cells, contexts and indexes, as SQL.
        cells: The keys of the cells.

    Raises:
        ExperimentError: There is no such experiment in the file.
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    return rows_of_answers(
        file,
        experiment,
        columns,
        "JOIN cells ON cells.id = answers.cell JOIN contexts ON contexts.id = answers.context "
        'JOIN indexes ON indexes.id = contexts."index" WHERE cells.key IN (SELECT value FROM json_each(?))',
        json.dumps(list(cells)),
    )
