"""Building a data set from records, each checked when it is added."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from oprag._internal.masking import describe
from oprag.compare.data.data_set import DataSet, DocumentText, Evidence, Question, problem_of
from oprag.compare.data.files import is_within
from oprag.errors import DataError, InputFileError

__all__ = ["DataSetBuilder", "RecordError"]


class RecordError(Exception):
    """A record violates its format; the message has the field, the value and the expected value."""


class DataSetBuilder:
    """Builds a data set from files, which must be inside the folder `within`, if given, and not hidden there."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self._within = None if within is None else within.resolve()
        self._documents: dict[str, DocumentText] = {}
        self._names: dict[Hashable, str] = {}
        self._questions: dict[str, Question] = {}
        self._files: dict[Path, None] = {}

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Raise a problem in this block as a DataError with this location."""
        try:
            yield
        except (RecordError, InputFileError) as error:
            raise DataError(f"{place}: {error}", str(self.path)) from error

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

    def document(self, key: Hashable, name: str, read: Callable[[], DocumentText]) -> str:
        """Add a document and return its name; documents with the same key are one, which is read once."""
        if key not in self._names:
            text = read()
            if not any(map(str.strip, [text] if isinstance(text, str) else text)):
                raise RecordError(f"the text of the document {describe(name)} must not be empty")
            if self._documents.setdefault(name, text) != text:
                raise RecordError(
                    f"another document {describe(name)} already exists with a different text; names must be unique"
                )
            self._names[key] = name
        return self._names[key]

    def context(self, text: str, name: str) -> str:
        """Add a document that is part of a question record and return its name; equal texts are one document."""
        return self.document(text, name, lambda: text)

    def question(
        self,
        *,
        id: str,  # noqa: A002  # field name of Question
        documents: Iterable[str],
        answers: Iterable[str] = (),
        choices: Iterable[str] = (),
        evidence: Iterable[Evidence] = (),
        about: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """Add a question about documents that were added; the right choice is the gold answer if there are none."""
        if id in self._questions:
            raise RecordError(f"the id {describe(id)} is used twice; ids must be unique")
        question = Question(
            id=id,
            documents=tuple(dict.fromkeys(documents)),
            answers=tuple(answers),
            choices=tuple(choices),
            evidence=tuple(evidence),
            about={name: _plain(value) for name, value in (about or {}).items() if value is not None},
            **fields,
        )
        if problem := problem_of(question, self._documents):
            raise RecordError(problem)
        if question.labels and not question.answers:
            question = replace(question, answers=question.labels[:1])
        self._questions[id] = question

    def data_set(self, name: str) -> DataSet:
        """Return the finished data set; raises if it has no questions."""
        if not self._questions:
            raise DataError(f"{self.path} contains no questions", str(self.path))
        questions = tuple(self._questions.values())
        return DataSet(name=name, documents=self._documents, questions=questions, files=tuple(self._files))


def _plain(value: Any) -> str | int | float:
    """The value of a field; lists and objects as JSON."""
    return value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
