"""Question sets: questions, their gold answers and evidence, and their documents."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple

from oprag._internal.masking import describe, listed
from oprag.errors import DataError, OptionError
from oprag.options import check_count

__all__ = ["DataSet", "DocumentText", "Evidence", "Question", "page_starts", "problem_of", "whole_text"]

_BETWEEN_PAGES = "\n\n"

DocumentText = str | Sequence[str]
"""The text of a document, or its pages."""


def whole_text(document: DocumentText) -> str:
    """The document as one text, with blank lines between pages."""
    return document if isinstance(document, str) else _BETWEEN_PAGES.join(document)


def page_starts(document: DocumentText) -> list[int]:
    """Start offset of each page in the whole text of a document."""
    starts = [0]
    for page in () if isinstance(document, str) else document[:-1]:
        starts.append(starts[-1] + len(page) + len(_BETWEEN_PAGES))
    return starts


class Evidence(NamedTuple):
    """Location of a passage that supports the gold answer.

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
    """One question of a data set.

    Attributes:
        id: Unique id within the data set.
        text: The question.
        documents: Names of the documents to search.
        answers: Gold answers, any of which is right; empty if the data set has none.
        choices: Options of a multiple-choice question.
        right_choice: Index of the right option in `choices`.
        evidence: Locations of the supporting passages; empty if the data set has none.
        about: Other fields, such as a split or a category, to analyze parts of the data set.
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
        """Text and letter of the right option, as ∞Bench expects them; None without a right option."""
        if self.right_choice is None:
            return None
        return self.choices[self.right_choice], ascii_uppercase[self.right_choice]


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """Questions and the documents they are about.

    Attributes:
        name: Name of the data set.
        documents: Text of each document, or its pages, by document name.
        questions: The questions.
        files: Files that the data set was read from; empty if it was created in Python.
        missing: If the data was not there, what is missing; its questions are placeholders, which can only be counted.

    Raises:
        DataError: `questions` is empty; two questions have the same id; a question is invalid (it has no text, a
            single choice or more than 26, or a right choice out of range), or refers to a missing document or to
            evidence outside its documents; a document is not text; or its name is blank or not valid Unicode.
    """

    name: str
    documents: Mapping[str, DocumentText] = field(repr=False)
    questions: Sequence[Question] = field(repr=False)
    files: Sequence[Path] = field(default=(), repr=False, compare=False)
    missing: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        what = f"the data set {describe(self.name)}"
        if not self.questions:
            raise DataError(f"{what} has no questions", self)
        for name, document in self.documents.items():
            if problem := _problem_of_document(name, document):
                raise DataError(f"{what}: {problem}", name)
        ids: set[str] = set()
        for question in self.questions:
            problem = "another question has the same id" if question.id in ids else problem_of(question, self.documents)
            if problem:
                raise DataError(f"{what}: the question {describe(question.id)}: {problem}", question)
            ids.add(question.id)

    def sample(self, count: int | None, seed: int = 0) -> DataSet:
        """Draw a random sample of the questions, in their original order, with all documents.

        Args:
            count: Number of questions; None, or more than the data set has, returns all of them.
            seed: Seed of the random generator.

        Raises:
            OptionError: `count` is not an integer of at least 1, or `seed` is not an integer.
        """
        check_count("count", count)
        if type(seed) is not int:
            raise OptionError(f"seed must be an integer, got {describe(seed)}", seed)
        if count is None or count >= len(self.questions):
            return self
        drawn = sorted(random.Random(seed).sample(range(len(self.questions)), count))
        return replace(self, questions=tuple(self.questions[number] for number in drawn))


def problem_of(question: Question, documents: Mapping[str, DocumentText]) -> str | None:
    """First problem of a question about these documents; None if it is valid."""
    return next(_problems(question, documents), None)


def _problems(question: Question, documents: Mapping[str, DocumentText]) -> Iterator[str]:
    text: Any = question.text
    if not isinstance(text, str) or not text.strip():
        yield f"its text must not be empty, got {describe(text)}"
    missing = [document for document in question.documents if document not in documents]
    if missing:
        yield f"its document {describe(missing[0])} is missing"
    if len(set(question.documents)) < len(question.documents):
        yield "it lists a document twice"
    for what in ("answers", "choices"):
        texts: Any = getattr(question, what)
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            yield f"its {what} must be a list of strings, got {describe(texts)}"
    count, right = len(question.choices), question.right_choice
    if count == 1 or count > len(ascii_uppercase):
        yield f"it must have no choices, or from 2 to {len(ascii_uppercase)}, one per letter, got {count}"
    if right is not None and not 0 <= right < count:
        yield f"right_choice is {right}, but must be an index into its {count} choices, counted from 0"
    yield from _misplaced(question, documents)


def _misplaced(question: Question, documents: Mapping[str, DocumentText]) -> Iterator[str]:
    for place, (document, start, end) in enumerate(question.evidence):
        if document not in question.documents:
            names = listed(question.documents)
            yield f"evidence[{place}] is in {describe(document)}, which is not a document of the question: {names}"
            continue
        length = len(whole_text(documents[document]))
        if not 0 <= start < end <= length:
            yield (
                f"evidence[{place}] must be a non-empty span of the document {describe(document)}, which has "
                f"{length:,} characters, got {start} to {end}"
            )


def _problem_of_document(name: Any, document: Any) -> str | None:
    # Unpaired surrogates cannot be encoded.
    if not isinstance(name, str) or not name.strip() or name.encode(errors="replace").decode() != name:
        return f"{describe(name)} is not a valid document name; rename the document"
    pages = [document] if isinstance(document, str) else document
    if isinstance(pages, Sequence) and all(isinstance(page, str) for page in pages):
        return None
    return f"the document {describe(name)} must be a string, or a list of pages"
