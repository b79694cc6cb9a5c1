"""Rows of a results file as plain values that can be pickled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.methods.model_calls import Completion, Usage

__all__ = [
    "JUDGED",
    "AnswerRecord",
    "CellRecord",
    "ChunkRecord",
    "ContextRecord",
    "Done",
    "FailedCall",
    "Failure",
    "Hit",
    "IndexRecord",
    "Measurement",
    "QuestionRecord",
    "Reply",
    "Retrieval",
    "RunRecord",
    "Spent",
    "StoredAnswer",
    "VectorRecord",
]

JUDGED = "metric:"
"""Prefix of the step of a judge's call; the name of the judge follows."""


@dataclass(frozen=True)
class Spent:
    """Model calls, including failed ones, with the tokens read and written, and their price if known."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sum of both."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def minus(self, other: Spent) -> Spent:
        """Return the difference of both."""
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


# Cached work


class Reply(NamedTuple):
    """A model's reply."""

    key: str
    model: str  # its identity
    step: str  # step of the method that made the call first
    text: str
    usage: Usage
    finish_reason: str | None
    seconds: float  # wall time; other calls may run at the same time
    money: float | None = None  # None without a price

    @property
    def completion(self) -> Completion:
        """The reply in the form that methods receive."""
        return Completion(self.text, usage=self.usage, seconds=self.seconds, finish_reason=self.finish_reason)


class FailedCall(NamedTuple):
    """A call that failed."""

    key: str  # key of the missing reply
    model: str
    step: str
    error: str  # the class of the error
    message: str
    seconds: float


class ChunkRecord(NamedTuple):
    """A chunk of an index; its row is its position in the list."""

    document: str
    page: int | None  # from 1 if the document has pages; offsets are then relative to the page
    start: int
    end: int  # exclusive
    tokens: int  # counted by the tokenizer of the index


@dataclass(frozen=True)
class IndexRecord:
    """Documents and the chunks they were split into."""

    key: str
    documents: Sequence[str]
    splitter: str
    chunk_size: int  # tokens or words, in the same unit as the overlap
    chunk_overlap: int
    tokenizer: str
    pieces: Sequence[ChunkRecord] = field(repr=False)


class Hit(NamedTuple):
    """A chunk returned by a search, with the score of the retriever or the store."""

    row: int
    score: float | None


@dataclass(frozen=True)
class Retrieval:
    """Result of a search for a question."""

    key: str
    index: str  # key of the index
    embedder: str | None  # its identity; None if nothing was embedded
    search: str  # how chunks were ranked
    store: str  # the store that found the nearest vectors
    question: str
    depth: int | None  # requested number of chunks; None for all
    hits: Sequence[Hit] = field(repr=False)  # best first


class VectorRecord(NamedTuple):
    """Unit vector of a text."""

    embedder: str  # its identity
    hash: bytes  # of the text
    vector: NDArray[np.float32]

    @property
    def key(self) -> tuple[str, bytes]:
        """Embedder identity and text hash."""
        return self.embedder, self.hash


# Experiments and their answers


class CellRecord(NamedTuple):
    """A cell of an experiment."""

    key: str
    values: Mapping[str, Any]  # values of all axes with a column, and of other axes if not the default
    identity: Mapping[str, Any]  # of its embedder, its model, and everything else its answers depend on


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
    """A context passed to a model."""

    key: str
    index_key: str
    kept: Sequence[tuple[int, int, float | None]]  # row, rank, and cosine if known, in the order of the context
    dropped: Mapping[str, int]  # number of chunks by reason


class Measurement(NamedTuple):
    """What the process and its children used while an answer was made."""

    seconds: float  # wall time
    cpu_seconds: float  # of all cores, user and system
    peak_memory_mib: float  # resident memory


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """Answer to a question in a cell, or the error if it failed."""

    cell: str  # key of the cell; `question` is a key too
    question: str
    text: str | None = None
    error: str | None = None  # error class; None for an answer
    message: str | None = None
    notes: Sequence[str] = ()
    route: str | None = None  # of self_route
    calls: Sequence[tuple[str, str]] = ()  # step and key of each reply
    usage: Usage = field(default_factory=Usage)  # of these calls, including calls shared with other cells
    embedded_tokens: int = 0  # of texts other than chunks, by the embedder's tokenizer, including shared ones
    context_tokens: int | None = None  # by the token counter of the experiment
    context_embedder_tokens: int | None = None  # of the context's chunks, by the embedder's tokenizer
    context_chunks: int | None = None
    context: ContextRecord | None = None
    scores: Mapping[str, float] = field(default_factory=dict)  # by metric; only metrics that apply
    metric_calls: Sequence[tuple[str, str]] = ()  # step and key of each judge reply
    measurement: Measurement | None = None  # None unless it was measured, and all its calls were made for it


class Done(NamedTuple):
    """Pairs of cell key and question key that need no further work."""

    answered: set[tuple[str, str]]
    failed: dict[tuple[str, str], str]  # with the error class
    broken: int  # answers that were changed, or whose replies are missing or were changed


# Records returned by a reader; cells and questions are positions in its lists


class StoredAnswer(NamedTuple):
    """An answer or a failure; calls and tokens are counted as if none were shared with other cells."""

    cell: int
    question: int
    error: str | None  # error class; None for an answer
    message: str | None
    notes: tuple[str, ...]
    route: str | None
    context: str | None  # key of the context
    text: str  # up to the requested length
    more: int  # number of characters cut off
    estimated: bool  # whether any token count is an estimate
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    context_chunks: int | None
    seconds: float | None  # as in `Measurement`; None if the answer was not measured
    cpu_seconds: float | None
    peak_memory_mib: float | None

    @property
    def failed(self) -> bool:
        """Whether answering failed."""
        return self.error is not None


@dataclass(frozen=True)
class Failure:
    """Failed questions with the same error class: its most frequent message, and their number."""

    error: str
    message: str
    count: int


class RunRecord(NamedTuple):
    """A run: start, end, outcome, and versions of the software."""

    started: str
    ended: str | None  # None if it was killed or is in progress
    outcome: str | None
    versions: Mapping[str, str]
