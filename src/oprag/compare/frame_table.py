"""The settings of an experiment as a table: rows, columns, and files of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, overload

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.answer_rows import TEXTS, answer_columns, answer_rows
from oprag.compare.curve import ORDERED_AXES
from oprag.compare.exporting import CSV, PARQUET, data_frame, write_csv, write_parquet
from oprag.compare.frame_text import as_html, as_text
from oprag.compare.measurements import MeasuredSetting
from oprag.compare.metrics.registry import more_is_better
from oprag.compare.quantities import Seconds, values_by_question
from oprag.compare.reading import Results
from oprag.compare.running.report import RunReport
from oprag.compare.setting import settings_of
from oprag.compare.setting_rows import axis_columns, setting_columns, setting_rows
from oprag.compare.stats.resampling import RESAMPLES
from oprag.compare.table import CellSummary, metrics_of
from oprag.errors import OptionError
from oprag.files.writing import FileKind, check_target

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["File", "SettingTable"]

File = str | os.PathLike[str]


class SettingTable(Sequence[Mapping[str, Any]]):
    """A row for each setting, in the sequence of the grid; `Comparison` says what is in it.

    Args:
        results: What is in the file.
        table: What each setting scored and took.
        measured: What was measured of some of them.
        seconds: The same question by question.
        path: The results file.
        confidence: How often an interval holds the truth.
        resamples: How many samples intervals are drawn from.
        report: What a run did.
        axis_names: Axes that are columns although all settings have the same value.
    """

    def __init__(
        self,
        results: Results,
        table: Sequence[CellSummary],
        measured: Sequence[MeasuredSetting],
        seconds: Seconds,
        path: File,
        *,
        confidence: float = 0.95,
        resamples: int = RESAMPLES,
        report: RunReport | None = None,
        axis_names: Sequence[str] = (),
    ) -> None:
        self.results = results
        self.settings = tuple(table)
        self.path = Path(path)
        self.report = report
        self.measured = tuple(measured)
        self.seconds = seconds
        self.confidence = confidence
        self.resamples = resamples
        self.axis_columns = tuple(dict.fromkeys([*axis_columns(self.settings), *axis_names]))

    @property
    def experiment(self) -> str:
        """The name of the experiment."""
        return self.results.experiment

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that there are scores of: first those that the experiment names, in its sequence."""
        there = metrics_of(self.results)
        asked = [name for name in self.results.described.get("metrics", ()) if name in there]
        return tuple(dict.fromkeys([*asked, *there]))

    @property
    def metric(self) -> str:
        """The metric that is meant where none is named: the first of which there are scores, and more is better.

        Raises:
            OptionError: There is none.
        """
        for name in self.metrics:
            if more_is_better(name):
                return name
        there = f"; there are scores of {', '.join(self.metrics)}" if self.metrics else ""
        raise OptionError(f"there are no scores of a metric of which more is better{there}", self.metrics)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes in which settings differ."""
        return tuple(varying_axes(self.settings)[0])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(setting_columns(self._rows))

    @overload
    def __getitem__(self, which: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> Sequence[Mapping[str, Any]]: ...
    @overload
    def __getitem__(self, which: str) -> Sequence[Any]: ...
    def __getitem__(self, which: int | slice | str) -> Any:
        if not isinstance(which, str):
            return self._rows[which]
        if which not in self.columns:
            raise OptionError(f"there is no column {which!r}; there are {', '.join(self.columns)}", which)
        return [row[which] for row in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return as_text(self.experiment, self.settings)

    def _repr_html_(self) -> str:
        return as_html(self.experiment, self.settings)

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each answer and each failure, read from the file as they are taken.

        A row has the axes of the table (and the seed and the repeat, where they differ), the question with its gold
        answers and documents, the answer or why there is none, its tokens, its scores, and what was measured.

        Raises:
            ResultsFileError: The file is not there any more, or is damaged.
        """
        return answer_rows(self.results, self.path, self.axis_columns, measured=bool(self.seconds))

    def to_pandas(self, *, answers: bool = False) -> pd.DataFrame:
        """A data frame of pandas, with a row for each setting.

        Args:
            answers: Whether there is a row for each answer instead.

        Raises:
            MissingExtraError: pandas is not installed.
            ResultsFileError: The file is not there any more, or is damaged.
        """
        columns, rows = self._exported(answers=answers)
        return data_frame(columns, rows, numbers=self._numbers(columns))

    def to_csv(self, path: File, *, answers: bool = False, spreadsheet_safe: bool = True) -> None:
        """Write a CSV file in UTF-8, with commas, whole or not at all.

        Args:
            path: The file; one that is there is replaced, if it is such a table.
            answers: Whether there is a row for each answer in place of one for each setting.
            spreadsheet_safe: Whether a text that a spreadsheet would take for a formula (it begins with = + - or @, a
                tab or a line end) has an apostrophe put before it. Parquet has texts as they are.

        Raises:
            OptionError: It cannot be written.
            ResultsFileError: The file of the results is not there any more, or is damaged.
        """
        columns, rows = self._exported(answers=answers)
        write_csv(self._target(path, CSV), columns, rows, spreadsheet_safe=spreadsheet_safe)

    def to_parquet(self, path: File, *, answers: bool = False) -> None:
        """Write a Parquet file, whole or not at all.

        Args:
            path: The file; one that is there is replaced, if it is such a table.
            answers: Whether there is a row for each answer in place of one for each setting.

        Raises:
            OptionError: It cannot be written.
            ResultsFileError: The file of the results is not there any more, or is damaged.
            MissingExtraError: pyarrow is not installed.
        """
        columns, rows = self._exported(answers=answers)
        write_parquet(self._target(path, PARQUET), columns, rows, numbers=self._numbers(columns))

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        means = [
            fmean(found) if (found := values_by_question(setting, "seconds", self.seconds).values()) else None
            for setting in settings_of(self.results.cells)
        ]
        return setting_rows(self.settings, self.measured, means, self.axis_columns)

    def _exported(self, *, answers: bool) -> tuple[Sequence[str], Iterable[Mapping[str, Any]]]:
        if not answers:
            return self.columns, self._rows
        return answer_columns(self.results, self.axis_columns, measured=bool(self.seconds)), self.answers()

    def _numbers(self, columns: Iterable[str]) -> set[str]:
        """The columns that hold numbers, also where all of them are missing."""
        texts = {*TEXTS, *(name for name in self.axis_columns if name not in ORDERED_AXES)}
        return {name for name in columns if name not in texts}

    def _target(self, path: File, kind: FileKind) -> Path:
        return check_target(path, self.path, kind=kind)
