"""Building a data set from records, each of them checked when it is added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oprag.compare.data.data_set import DataSet, Evidence, Question, problem_of
from oprag.compare.data.files import is_within
from oprag.errors import DataError, InputFileError

__all__ = ["DataSetBuilder", "RecordError"]

_SHOWN = 5  # problems that a message names
_MOST = 10_005  # problems that are counted; nobody corrects that many one by one


class RecordError(Exception):
    """A record is not as its format says; the message has the field, the value and what was expected."""


class DataSetBuilder:
    """Builds a data set from files, which must lie in the folder `within` if there is one, and not be hidden there.

    Problems are collected with their places, so that one reading reports several records.
    """

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self._within = None if within is None else within.resolve()
        self._problems: list[str] = []
        self._documents: dict[str, str | Sequence[str]] = {}
        self._read: dict[tuple[str, str], str | Sequence[str] | Exception] = {}
        self._names: dict[str, str] = {}
        self._questions: dict[str, Question] = {}
        self._files: dict[Path, None] = {}

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Note a problem within this block as one at this place, and go on after it."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            self._problems.append(f"{place}: {error}")
            if len(self._problems) == _MOST:
                self.check()

    def check(self) -> None:
        """Raise a DataError with the first five problems, one a line, and the number of the others."""
        if self._problems:
            more = len(self._problems) - _SHOWN
            others = [f"and {more:,} more"] if more > 0 else []
            raise DataError("\n".join([*self._problems[:_SHOWN], *others]), str(self.path))

    def reads(self, path: Path) -> Path:
        """The path of a file that is about to be read; raises where it must not be."""
        if self._within is not None and not is_within(self._within, path):
            raise InputFileError(
                f"{path} is hidden, or leads out of the folder {self._within} by a link; copy the file into the "
                "folder, or trust the experiment file",
                str(path),
            )
        self._files[path] = None
        return path

    def document(self, name: str, text: str | Sequence[str]) -> str:
        """Add a document, and return its name; the same one again changes nothing."""
        if not any(map(str.strip, [text] if isinstance(text, str) else text)):
            raise RecordError(f"the text of the document {name!r} must not be empty")
        if self._documents.setdefault(name, text) != text:
            raise RecordError(f"there already is a document {name!r} with another text; names must be unique")
        return name

    def document_once(self, name: str, origin: str, read: Callable[[], str | Sequence[str]]) -> str:
        """Add a document that is read once, even if that fails: a thousand questions may name a damaged file."""
        place = origin, name
        if place not in self._read:
            try:
                self._read[place] = read()
            except (InputFileError, RecordError) as error:
                self._read[place] = error
        text = self._read[place]
        if isinstance(text, Exception):
            raise RecordError(str(text))
        return self.document(name, text)

    def context(self, text: str, name: str) -> str:
        """Add a document that comes with its question, and return its name; equal texts are one document."""
        if text not in self._names:
            self._names[text] = self.document(name, text)
        return self._names[text]

    def text(self, name: str) -> str | Sequence[str]:
        """The text or the pages of an added document."""
        return self._documents[name]

    def question(
        self,
        *,
        id: str,  # noqa: A002  # as the question has it
        text: str,
        documents: Iterable[str],
        answers: Iterable[str] = (),
        choices: Sequence[str] = (),
        right_choice: int | None = None,
        evidence: Iterable[Evidence] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a question about added documents; without gold answers the right choice is one."""
        if id in self._questions:
            raise RecordError(f"the id {id!r} is used twice; ids must be unique")
        if right_choice is not None and not answers:
            answers = choices[right_choice : right_choice + 1]
        question = Question(
            id=id,
            text=text,
            documents=tuple(dict.fromkeys(documents)),
            answers=tuple(answers),
            choices=tuple(choices),
            right_choice=right_choice,
            evidence=tuple(evidence),
            about=_about(about or {}),
        )
        if problem := problem_of(question, self._documents):
            raise RecordError(problem)
        self._questions[id] = question

    def data_set(self, name: str) -> DataSet:
        """The data set; raises if there were problems."""
        self.check()
        if not self._questions:
            raise DataError(f"{self.path} has no questions in it", str(self.path))
        return DataSet(
            name=name,
            documents=self._documents,
            questions=tuple(self._questions.values()),
            files=tuple(self._files),
        )


def _about(fields: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Fields without nulls, lists and objects as their JSON."""
    return {
        field: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for field, value in fields.items()
        if value is not None
    }
