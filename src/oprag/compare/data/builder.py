"""Building a data set from records, each of them checked when it is added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oprag.compare.data.data_set import DataSet, Evidence, Question, problem_of, whole_text
from oprag.compare.data.files import is_within
from oprag.compare.data.problems import Problems, RecordError
from oprag.compare.data.records import as_text
from oprag.errors import DataError, InputFileError

__all__ = ["DataSetBuilder"]

_TAKEN = "the document {name!r} is there with another text or from another place before; names must be distinct"


class DataSetBuilder:
    """Builds a data set from files, which must lie in the folder `within` if there is one, and not be hidden there."""

    def __init__(self, path: Path, within: Path | None = None) -> None:
        self.path = path
        self._within = None if within is None else within.resolve()
        self.problems = Problems(str(path))
        self.other_fields: dict[str, str] = {}
        self._documents: dict[str, str | Sequence[str]] = {}
        self._lengths: dict[str, int] = {}
        self._origins: dict[str, str] = {}
        self._failed: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._questions: dict[str, Question] = {}
        self._files: dict[Path, None] = {}

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
        if name in self._documents:
            if self._documents[name] != text:
                raise RecordError(_TAKEN.format(name=name))
            return name
        whole = as_text(whole_text(text), f"the text of the document {name!r}")
        self._documents[name] = text
        self._lengths[name] = len(whole)
        return name

    def document_once(self, name: str, origin: str, read: Callable[[], str | Sequence[str]]) -> str:
        """Add a document that is read once, even if that fails; from another origin it is another document."""
        if name in self._failed:
            raise RecordError(self._failed[name])
        if name in self._documents:
            if self._origins.get(name) != origin:
                raise RecordError(_TAKEN.format(name=name))
        else:
            try:
                self.document(name, read())
                self._origins[name] = origin
            except (InputFileError, RecordError) as error:
                # A damaged file may be named by a thousand questions.
                self._failed[name] = str(error)
                # What is wrong is its own fault, not that of the questions about it.
                self._lengths[name] = 0
                raise
        return name

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
            raise RecordError(f"the id {id!r} was there before; each question must have one of its own")
        if right_choice is not None and not answers:
            answers = (choices[right_choice],)
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
        if problem := problem_of(question, self._lengths):
            raise RecordError(problem)
        self._questions[id] = question

    def data_set(self, name: str) -> DataSet:
        """The data set; raises if there were problems."""
        self.problems.check()
        if not self._questions:
            raise DataError(f"{self.path} has no questions in it", str(self.path))
        return DataSet(
            name=name,
            documents=self._documents,
            questions=tuple(self._questions.values()),
            files=tuple(self._files),
            other_fields=self.other_fields,
        )


def _about(fields: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Fields without nulls, lists and objects as their JSON."""
    return {
        field: value if isinstance(value, str | int | float) else json.dumps(value, ensure_ascii=False, sort_keys=True)
        for field, value in fields.items()
        if value is not None
    }
