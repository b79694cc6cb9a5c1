"""The rows of a results file as plain values, which can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.methods.model_calls import Completion, Usage

__all__ = [
    "JUDGED",
    "AnswerRecord",
    "CellRecord",
    "ContextRecord",
    "Done",
    "FailedCall",
    "FailedMeasurement",
    "Failure",
    "Hit",
    "IndexRecord",
    "MeasuredSoFar",
    "Measurement",
    "Phase",
    "Piece",
    "QuestionRecord",
    "Reply",
    "Retrieval",
    "RunRecord",
    "Spent",
    "StoredAnswer",
    "StoredVector",
]

JUDGED = "metric:"
"""The prefix of the step of a judge's call; the name of the judge follows."""

Phase = Literal["indexing", "retrieval", "generation"]
"""Indexing is splitting, embedding and storing, once for the documents of a question."""


@dataclass(frozen=True)
class Spent:
    """Calls of models, failed ones included, with the tokens read and written, and their price if they have one."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Add the other."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def minus(self, other: Spent) -> Spent:
        """Subtract the other."""
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


# Work that is done once


class Reply(NamedTuple):
    """A model's reply."""

    key: str
    model: str  # its identity
    step: str  # of the method that asked first
    text: str
    usage: Usage
    finish_reason: str | None
    seconds: float  # wall time, with other calls at the same time
    money: float | None = None  # None without a price

    @property
    def completion(self) -> Completion:
        """The reply, as methods get it."""
        return Completion(self.text, usage=self.usage, seconds=self.seconds, finish_reason=self.finish_reason)


class FailedCall(NamedTuple):
    """A call without a reply."""

    key: str  # that the reply would have had
    model: str
    step: str
    error: str  # the class of the error
    message: str
    seconds: float


class Piece(NamedTuple):
    """A chunk of an index; its row is its place in the list."""

    document: str
    page: int | None  # from 1, where the document has pages; offsets then count from its start
    start: int
    end: int  # exclusive
    tokens: int  # by the tokenizer of the index


@dataclass(frozen=True)
class IndexRecord:
    """Documents and the chunks that they were split into."""

    key: str
    documents: Sequence[str]
    splitter: str
    chunk_size: int  # tokens, or words, as are those of the overlap
    chunk_overlap: int
    tokenizer: str
    pieces: Sequence[Piece] = field(repr=False)


class Hit(NamedTuple):
    """A chunk that a search returned, and the score that the retriever or the store gave it."""

    row: int
    score: float | None


@dataclass(frozen=True)
class Retrieval:
    """The result of a search for a question."""

    key: str
    index: str  # its key
    embedder: str | None  # its identity; None where nothing was embedded
    search: str  # how chunks were ranked
    store: str  # the store that found the nearest vectors
    question: str
    depth: int | None  # how many were asked for; None for all
    hits: Sequence[Hit] = field(repr=False)  # best first


class StoredVector(NamedTuple):
    """The unit vector of a text."""

    embedder: str  # its identity
    hash: bytes  # of the text
    vector: NDArray[np.float32]

    @property
    def key(self) -> tuple[str, bytes]:
        """The embedder and the hash."""
        return self.embedder, self.hash


# Experiments and their answers


class CellRecord(NamedTuple):
    """A cell of an experiment."""

    key: str
    values: Mapping[str, Any]  # on the axes with a column, and on others where they are not the default
    identity: Mapping[str, Any]  # of its embedder, its model, and whatever else its answers depend on


class QuestionRecord(NamedTuple):
    """A question of a data set."""

    key: str
    data: str
    name: str
    question: str
    answers: Sequence[str]
    choices: Sequence[str]
    right_choice: int | None
    evidence: Sequence[tuple[str, int, int]]
    documents: Sequence[str]
    about: Mapping[str, Any]


class ContextRecord(NamedTuple):
    """A context that a model was given to read."""

    key: str
    index_key: str
    kept: Sequence[tuple[int, int, float | None]]  # row, rank, and cosine if known, in the order of the context
    dropped: Mapping[str, int]  # how many, by reason


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """The answer to a question in a cell, or why it failed."""

    cell: str  # its key, as is that of the question
    question: str
    text: str | None = None
    error: str | None = None  # the class of the error; None for an answer
    message: str | None = None
    notes: Sequence[str] = ()
    route: str | None = None  # of self_route
    calls: Sequence[tuple[str, str]] = ()  # the step and the key of each reply
    usage: Usage = field(default_factory=Usage)  # of these calls, shared ones included
    embedded_tokens: int = 0  # of texts that are not chunks, by the embedder's tokenizer, shared ones included
    context_tokens: int | None = None  # by the token counter of the experiment
    context_embedder_tokens: int | None = None  # of its chunks, by the embedder's tokenizer
    context_chunks: int | None = None
    context: ContextRecord | None = None
    scores: Mapping[str, float] = field(default_factory=dict)  # by metric, of those that apply
    metric_calls: Sequence[tuple[str, str]] = ()  # the step and the key of each reply of a judge


class Done(NamedTuple):
    """The places, as keys of cell and question, that need no further work."""

    answered: set[tuple[str, str]]
    failed: dict[tuple[str, str], str]  # with the class of the error
    broken: int  # answers whose replies are missing or were changed


# Measurements


class Measurement(NamedTuple):
    """Time, processor and memory of one phase of one attempt at an answer."""

    cell: str  # its key, as is that of the question
    question: str
    attempt: int  # from 1
    phase: Phase
    seconds: float
    cpu_percent: float  # of the usable cores
    peak_memory_bytes: int  # resident memory
    memory_growth_bytes: int


class FailedMeasurement(NamedTuple):
    """An answer that could not be measured."""

    cell: str
    question: str
    error: str
    message: str


class MeasuredSoFar(NamedTuple):
    """The places, as keys of cell and question, that were measured."""

    attempts: set[tuple[str, str, int]]  # with the number of each attempt
    indexed: set[tuple[str, str]]  # where making the index was measured
    failed: dict[tuple[str, str], str]  # in this run, with the class of the error

    def missing(self, place: tuple[str, str], repeats: int) -> list[int]:
        """The attempts at an answer that are not measured yet."""
        return [attempt for attempt in range(1, repeats + 1) if (*place, attempt) not in self.attempts]

    def done(self, repeats: int) -> Done:
        """The places whose attempts are all measured, and the others that failed."""
        tried = {(cell, question) for cell, question, _ in self.attempts}
        answered = {place for place in tried if not self.missing(place, repeats)}
        return Done(answered, {place: error for place, error in self.failed.items() if place not in answered}, 0)


# What a reader returns; cells and questions are positions in its lists


class StoredAnswer(NamedTuple):
    """An answer or a failure; tokens are those of its cell alone."""

    cell: int
    question: int
    error: str | None  # the class of the error; None for an answer
    message: str | None
    notes: tuple[str, ...]
    route: str | None
    context: str | None  # its key
    text: str  # as much of it as was asked for
    more: int  # characters of the text that were not
    estimated: bool  # whether tokens of a reply are an estimate
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    context_chunks: int | None

    @property
    def failed(self) -> bool:
        """Whether there is no answer."""
        return self.error is not None


@dataclass(frozen=True)
class Failure:
    """Questions without an answer: the class of their error, its commonest message, and how many they are."""

    error: str
    message: str
    count: int


class RunRecord(NamedTuple):
    """A run: when it began and ended, how, and the versions it ran on."""

    started: str
    ended: str | None  # None if it was killed or is in progress
    outcome: str | None
    versions: Mapping[str, str]
