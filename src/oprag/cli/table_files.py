"""Files that a command writes its table to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from oprag.cli.console import tell
from oprag.errors import OptionError
from oprag.files.writing import check_target

if TYPE_CHECKING:
    from oprag.compare.measurements import MeasuredSetting
    from oprag.compare.reading import Results
    from oprag.compare.table import CellSummary

__all__ = ["TableFiles"]


@dataclass(frozen=True, kw_only=True)
class TableFiles:
    """What is to be written, and where to; an earlier table that is there is replaced.

    Attributes:
        csv: The CSV file; None for none.
        parquet: The Parquet file; None for none.
        answers: Whether there is a row for each answer in place of one for each setting.
    """

    csv: str | None
    parquet: str | None
    answers: bool

    def check(self, *read: str | os.PathLike[str], plan: bool) -> None:
        """Refuse what cannot be written, before anything is spent.

        Args:
            read: Files that the command reads or writes otherwise.
            plan: Whether nothing is run.

        Raises:
            OptionError: A file cannot be written, or must not be; or nothing would be.
            MissingExtraError: What writes Parquet is not installed.
        """
        named = [name for name in (self.csv, self.parquet) if name is not None]
        if self.answers and not named:
            raise OptionError("--answers says what --csv and --parquet write; name such a file", self.answers)
        if not named:
            return
        if plan:
            raise OptionError("--plan runs nothing, so there is no table; leave --csv and --parquet out", named)
        from oprag.compare.exporting import CSV, PARQUET, check_parquet

        if self.parquet is not None:
            check_parquet()
        for name, kind in ((self.csv, CSV), (self.parquet, PARQUET)):
            if name is not None:
                check_target(name, *read, kind=kind)
        if len({Path(name).resolve() for name in named}) < len(named):
            raise OptionError(f"--csv and --parquet must be two files, got {named[0]} for both", named)

    def write(
        self, results: Results, table: Sequence[CellSummary], measured: Sequence[MeasuredSetting], path: Path
    ) -> None:
        """Write the files.

        Args:
            results: What is in the results file.
            table: What each setting scored and took.
            measured: What was measured of some of them.
            path: The results file.

        Raises:
            OptionError: A file cannot be written.
        """
        if self.csv is None and self.parquet is None:
            return
        from oprag.compare.frame import Comparison
        from oprag.compare.quantities import read_seconds

        comparison = Comparison(results, table, measured, read_seconds(results, path), path)
        if self.csv is not None:
            comparison.to_csv(self.csv, answers=self.answers)
            tell(f"CSV: {self.csv}")
        if self.parquet is not None:
            comparison.to_parquet(self.parquet, answers=self.answers)
            tell(f"Parquet: {self.parquet}")
