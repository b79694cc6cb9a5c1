"""Questions about documents, as every format is read."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_count

__all__ = ["DataSet", "Evidence", "Question", "fields_text", "files_of", "page_starts", "whole_text"]

_BETWEEN_PAGES = "\n\n"


def whole_text(document: str | Sequence[str]) -> str:
    """A document as one text; blank lines stand between pages."""
    return document if isinstance(document, str) else _BETWEEN_PAGES.join(document)


def page_starts(document: str | Sequence[str]) -> list[int]:
    """Where each page begins in the whole text of a document; one that has no pages begins at 0."""
    starts = [0]
    for page in () if isinstance(document, str) else document[:-1]:
        starts.append(starts[-1] + len(page) + len(_BETWEEN_PAGES))
    return starts


class Evidence(NamedTuple):
    """Where a part of the gold answer stands.

    Attributes:
        document: The name of the document.
        start: Offset of its first character in the whole text of the document, see `whole_text`.
        end: Offset behind its last character.
    """

    document: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of a set.

    Attributes:
        id: Its name in the set; no other question has it.
        text: The question.
        documents: The names of the documents that are searched for it.
        answers: The gold answers, each of them right; empty where the set has none.
        choices: The options of a multiple-choice question, in their order.
        right_choice: The place of the right option in `choices`, from 0.
        evidence: Where the answer stands; empty where the set does not say.
        about: What else the set says, such as its split or a category, to look at parts of the set.
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
        name: What the set is called.
        documents: The text of each document by its name; the pages where it has some.
        questions: The questions.
        files: The files that it was read from; none where it was made in Python.
        other_fields: The fields of its records that our own format does not know, which are in `about`; each with the
            field that was probably meant, or an empty text.
    """

    name: str
    documents: Mapping[str, str | Sequence[str]] = field(repr=False)
    questions: Sequence[Question] = field(repr=False)
    files: Sequence[Path] = field(default=(), repr=False, compare=False)
    other_fields: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def sample(self, count: int | None, seed: int = 0) -> DataSet:
        """The set with so many of its questions, drawn at random, in their order; all where there are no more.

        Args:
            count: How many; None for all.
            seed: Another seed draws others.

        Raises:
            OptionError: The count is no whole number from 1, or the seed is no whole number.
        """
        check_count("count", count)
        if type(seed) is not int:
            raise OptionError(f"seed must be a whole number, got {describe(seed)}", seed)
        if count is None or count >= len(self.questions):
            return self
        drawn = sorted(random.Random(seed).sample(range(len(self.questions)), count))
        return replace(self, questions=tuple(self.questions[number] for number in drawn))


def fields_text(other_fields: Mapping[str, str]) -> str:
    """The unknown fields of a data set, in a line."""
    return ", ".join(name + (f" (did you mean {meant!r}?)" if meant else "") for name, meant in other_fields.items())


def files_of(data: Mapping[str, DataSet]) -> list[Path]:
    """The files that data sets were read from."""
    return [path for data_set in data.values() for path in data_set.files]
