"""Problems of a file of questions, collected over all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oprag.errors import DataError, InputFileError

__all__ = ["Problems", "RecordError"]

_SHOWN = 5
_MOST = 10_000  # others that are counted; nobody corrects that many one by one


class RecordError(Exception):
    """A record is not as its format says; the message has the field, the value and what was expected."""


class Problems:
    """Collects problems with their places, so that one reading reports several records."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._shown: list[str] = []
        self._more = 0

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Note a problem within this block as one at this place, and go on after it."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            self._note(f"{place}: {error}")

    def _note(self, note: str) -> None:
        if len(self._shown) < _SHOWN:
            self._shown.append(note)
        else:
            self._more += 1
        if self._more >= _MOST:
            self.check()

    def check(self) -> None:
        """Raise a DataError with the first five problems, one a line, and the number of the others."""
        if self._shown:
            more = [f"and {self._more:,} more"] if self._more else []
            raise DataError("\n".join([*self._shown, *more]), self._about)
