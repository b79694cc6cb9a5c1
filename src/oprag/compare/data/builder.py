"""Building a data set from records, each checked when it is added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oprag.compare.data.data_set import DataSet, Evidence, Question, problem_of
from oprag.compare.data.files import is_within
from oprag.errors import DataError, InputFileError
from oprag.masking import describe

__all__ = ["DataSetBuilder", "RecordError"]

_MAX_SHOWN = 5  # problems in a message
_MAX_PROBLEMS = 10_005  # problems before reading stops


class RecordError(Exception):
    """A record violates its format; the message has the field, the value and the expected value."""


class DataSetBuilder:
    """Builds a data set from files, which must be inside the folder `within`, if given, and not hidden there.

    Problems are collected with their locations, so that one pass reports several records.
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
        """Collect a problem raised in this block under this location, and continue after the block."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            self._problems.append(f"{place}: {error}")
            if len(self._problems) == _MAX_PROBLEMS:
                self.check()

    def check(self) -> None:
        """Raise a DataError with the first five problems, one per line, and the number of the others."""
        if self._problems:
            more = len(self._problems) - _MAX_SHOWN
            others = [f"and {more:,} more"] if more > 0 else []
            raise DataError("\n".join([*self._problems[:_MAX_SHOWN], *others]), str(self.path))

    def check_inside(self, path: Path) -> None:
        """Raise if a file or folder must not be read."""
        if self._within is not None and not is_within(self._within, path):
            raise InputFileError(
                f"{path} is hidden, or is outside the folder {self._within} after following links; move it into the "
                "folder, or use an Experiment in Python",
                str(path),
            )

    def reads(self, path: Path) -> Path:
        """Register a file before it is read; raises if it must not be read."""
        self.check_inside(path)
        self._files[path] = None
        return path

    def document(self, name: str, text: str | Sequence[str]) -> str:
        """Add a document and return its name; adding the same document again has no effect."""
        if not any(map(str.strip, [text] if isinstance(text, str) else text)):
            raise RecordError(f"the text of the document {describe(name)} must not be empty")
        if self._documents.setdefault(name, text) != text:
            raise RecordError(
                f"another document {describe(name)} already exists with a different text; names must be unique"
            )
        return name

    def document_once(self, name: str, origin: str, read: Callable[[], str | Sequence[str]]) -> str:
        """Add a document, reading it once even if that fails: thousands of questions may refer to one corrupt file."""
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
        """Add a document that is part of a question record and return its name; equal texts are one document."""
        if text not in self._names:
            self._names[text] = self.document(name, text)
        return self._names[text]

    def question(
        self,
        *,
        id: str,  # noqa: A002  # field name of Question
        text: str,
        documents: Iterable[str],
        answers: Iterable[str] = (),
        choices: Sequence[str] = (),
        right_choice: int | None = None,
        evidence: Iterable[Evidence] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a question about documents that were added; the right choice is the gold answer if there are none."""
        if id in self._questions:
            raise RecordError(f"the id {describe(id)} is used twice; ids must be unique")
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
        """Return the finished data set; raises if there were problems."""
        self.check()
        if not self._questions:
            raise DataError(f"{self.path} contains no questions", str(self.path))
        return DataSet(
            name=name,
            documents=self._documents,
            questions=tuple(self._questions.values()),
            files=tuple(self._files),
        )


def _about(fields: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Drop null fields, and encode lists and objects as JSON."""
    return {
        field: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for field, value in fields.items()
        if value is not None
    }
