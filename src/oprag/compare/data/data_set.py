"""Question sets: questions, their gold answers and evidence, and their documents."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from oprag.errors import DataError, OptionError
from oprag.masking import describe
from oprag.options import check_count

__all__ = ["DataSet", "Evidence", "Question", "files_of", "page_starts", "problem_of", "whole_text"]

_BETWEEN_PAGES = "\n\n"


def whole_text(document: str | Sequence[str]) -> str:
    """A document as one text, with blank lines between pages."""
    return document if isinstance(document, str) else _BETWEEN_PAGES.join(document)


def page_starts(document: str | Sequence[str]) -> list[int]:
    """Start offset of each page in the whole text of a document."""
    starts = [0]
    for page in () if isinstance(document, str) else document[:-1]:
        starts.append(starts[-1] + len(page) + len(_BETWEEN_PAGES))
    return starts


class Evidence(NamedTuple):
    """The place of a part of the gold answer.

    Attributes:
        document: Name of the document.
        start: Start offset in the whole text of the document, see `whole_text`.
        end: End offset (exclusive).
    """

    document: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a set.

    Attributes:
        id: Name in the set, which no other question has.
        text: The question.
        documents: Names of the documents that are searched for it.
        answers: The gold answers, each of them right; empty if the set has none.
        choices: The options of a multiple-choice question.
        right_choice: Index of the right option in `choices`.
        evidence: Places of the answer; empty if the set has none.
        about: Other fields of the set, such as its split or a category, to analyse parts of the set.
    """

    id: str
    text: str
    documents: tuple[str, ...]
    answers: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    right_choice: int | None = None
    evidence: tuple[Evidence, ...] = ()
    about: Mapping[str, str | int | float | bool] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> tuple[str, str] | None:
        """The text and the letter of the right option, as ∞Bench has them; None without one."""
        if self.right_choice is None:
            return None
        return self.choices[self.right_choice], ascii_uppercase[self.right_choice]


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Questions, and the documents that they are about.

    Attributes:
        name: Name of the set.
        documents: Text of each document by its name, or its pages.
        questions: The questions.
        files: The files that it was read from; empty if it was made in Python.

    Raises:
        DataError: There are no questions; two have the same id; one has no text, fewer than two or too many choices, or
            names a missing document or evidence outside of its documents; or a document is not a text, or has a name
            that cannot be written.
    """

    name: str
    documents: Mapping[str, str | Sequence[str]] = field(repr=False)
    questions: Sequence[Question] = field(repr=False)
    files: Sequence[Path] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        what = f"the data set {describe(self.name)}"
        if not self.questions:
            raise DataError(f"{what} has no questions", self)
        for name, document in self.documents.items():
            if problem := _problem_of_document(name, document):
                raise DataError(f"{what}: {problem}", name)
        ids: set[str] = set()
        for question in self.questions:
            problem = "another one has the same id" if question.id in ids else problem_of(question, self.documents)
            if problem:
                raise DataError(f"{what}: the question {describe(question.id)}: {problem}", question)
            ids.add(question.id)

    def sample(self, count: int | None, seed: int = 0) -> DataSet:
        """A random sample of the questions, in their order, with all documents.

        Args:
            count: Number of questions; None, or more than there are, for all of them.
            seed: Seed of the sample.

        Raises:
            OptionError: The count is not a whole number from 1, or the seed is not a whole number.
        """
        check_count("count", count)
        if type(seed) is not int:
            raise OptionError(f"seed must be a whole number, got {describe(seed)}", seed)
        if count is None or count >= len(self.questions):
            return self
        drawn = sorted(random.Random(seed).sample(range(len(self.questions)), count))
        return replace(self, questions=tuple(self.questions[number] for number in drawn))


def files_of(data: Mapping[str, DataSet]) -> list[Path]:
    """The files that data sets were read from."""
    return [path for data_set in data.values() for path in data_set.files]


def problem_of(question: Question, documents: Mapping[str, str | Sequence[str]]) -> str | None:
    """The first problem of a question about these documents."""
    return next(chain(_problems(question, documents), _misplaced(question, documents)), None)


def _problems(question: Question, documents: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    text: Any = question.text
    if not isinstance(text, str) or not text.strip():
        yield f"its text must not be empty, got {describe(text)}"
    missing = [document for document in question.documents if document not in documents]
    if missing:
        yield f"there is no document {describe(missing[0])}"
    if len(set(question.documents)) < len(question.documents):
        yield "it names a document twice"
    for what in ("answers", "choices"):
        texts: Any = getattr(question, what)
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            yield f"its {what} must be a list of texts, got {describe(texts)}"
    count, right = len(question.choices), question.right_choice
    if count > len(ascii_uppercase):
        yield f"there must be at most {len(ascii_uppercase)} choices, one a letter, got {count}"
    if count == 1:
        yield f"there must be at least two choices, or none, got {describe(list(question.choices))}"
    if right is not None and not 0 <= right < count:
        yield f"the right choice is number {right} of {count}, counted from 0"


def _misplaced(question: Question, documents: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    for place, (document, start, end) in enumerate(question.evidence):
        if document not in question.documents:
            named = ", ".join(question.documents)
            yield f"evidence[{place}] is in the document {describe(document)}; the question's are {named}"
        elif not 0 <= start < end <= _length(documents[document]):
            yield (
                f"evidence[{place}] must lie in the document {document!r}, which has "
                f"{_length(documents[document]):,} characters, and must not be empty; got {start} to {end}"
            )


def _problem_of_document(name: Any, document: Any) -> str | None:
    # Halves of surrogate pairs cannot be written.
    if not isinstance(name, str) or not name.strip() or name.encode(errors="replace").decode() != name:
        return f"{describe(name)} is not a name of a document; give it another one"
    if isinstance(document, str) or (
        isinstance(document, Sequence) and all(isinstance(page, str) for page in document)
    ):
        return None
    return f"the document {describe(name)} must be a text, or a list of pages"


def _length(document: str | Sequence[str]) -> int:
    """The length of the whole text, which is not joined for it: some documents have millions of characters."""
    if isinstance(document, str):
        return len(document)
    return sum(map(len, document)) + len(_BETWEEN_PAGES) * max(0, len(document) - 1)
