"""What is wrong with a file of questions, gathered over all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oprag.errors import DataError, InputFileError

__all__ = ["Problems", "RecordError"]

_SHOWN = 5
_MOST = 10_000  # others that are counted; nobody corrects so many one by one


class RecordError(Exception):
    """A record is not as its format says; the message names the field, what was got and what was expected."""


class Problems:
    """Notes of what is wrong and where, so that one reading tells of several records.

    Args:
        about: What the error that is raised in the end is about: the file that was asked for.
    """

    def __init__(self, about: str) -> None:
        self._about = about
        self._shown: list[str] = []
        self._more = 0

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Note what goes wrong inside, as something wrong at this place, and go on behind it."""
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
        """Go on only where nothing was wrong.

        Raises:
            DataError: Something was; the message has the first five notes, one a line, and the number of the others.
        """
        if self._shown:
            more = [f"and {self._more:,} more"] if self._more else []
            raise DataError("\n".join([*self._shown, *more]), self._about)
