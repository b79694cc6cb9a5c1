"""What is kept of a run, as plain values that can be written to a file or sent to another machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag.methods.model_calls import Completion, Usage

__all__ = [
    "AnswerRecord",
    "AnswerSummary",
    "AnswerText",
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
    "Status",
    "StoredContext",
    "StoredVector",
]

Status = Literal["answered", "failed"]
Phase = Literal["indexing", "retrieval", "generation"]


class Reply(NamedTuple):
    """A model's reply.

    Attributes:
        key: Its content address.
        model: The identity of the model.
        step: The step of the method that asked first.
        text: The reply.
        usage: The model's own count of tokens, or an estimate that is marked as one.
        finish_reason: Why the model stopped, in its own word.
        seconds: How long the call took, with whatever else ran at the time.
        money: What it cost; None without a price.
    """

    key: str
    model: str
    step: str
    text: str
    usage: Usage
    finish_reason: str | None
    seconds: float
    money: float | None = None

    @property
    def completion(self) -> Completion:
        """The reply as a driver takes it."""
        return Completion(self.text, usage=self.usage, seconds=self.seconds, finish_reason=self.finish_reason)


class FailedCall(NamedTuple):
    """A call that brought no reply.

    Attributes:
        key: The content address that the reply would have had.
        model: The identity of the model.
        step: The step of the method.
        error: The class of the error.
        message: What it says.
        seconds: How long it took.
    """

    key: str
    model: str
    step: str
    error: str
    message: str
    seconds: float


class Piece(NamedTuple):
    """A chunk of an index; its row is its place in the list.

    Attributes:
        document: The name of its document.
        page: Its page, from 1, where the document has pages; offsets then count from there.
        start: Offset of its first character.
        end: Offset behind its last character.
        tokens: Its tokens, by the tokenizer of the index.
    """

    document: str
    page: int | None
    start: int
    end: int
    tokens: int


@dataclass(frozen=True)
class IndexRecord:
    """How documents were split.

    Attributes:
        key: Its content address.
        documents: The names of the documents.
        splitter: How they were split.
        size: Tokens, or words, in a chunk.
        overlap: Tokens, or words, that neighbours share.
        tokenizer: What counted them.
        pieces: The chunks.
    """

    key: str
    documents: Sequence[str]
    splitter: str
    size: int
    overlap: int
    tokenizer: str
    pieces: Sequence[Piece] = field(repr=False)


class Hit(NamedTuple):
    """A chunk that was found.

    Attributes:
        row: The number of the chunk in its index.
        score: The score that the retriever or the store gave it; None where it gave none.
    """

    row: int
    score: float | None


@dataclass(frozen=True)
class Retrieval:
    """What was found for a question.

    Attributes:
        key: Its content address.
        index: The key of the index.
        embedder: The identity of the embedder; None where nothing was embedded.
        search: How chunks were ranked.
        store: What found the nearest vectors.
        question: The question.
        depth: How many were asked for; None for all.
        hits: The chunks, best first.
    """

    key: str
    index: str
    embedder: str | None
    search: str
    store: str
    question: str
    depth: int | None
    hits: Sequence[Hit] = field(repr=False)


class StoredVector(NamedTuple):
    """The vector of a text.

    Attributes:
        embedder: The identity of the embedder.
        hash: The hash of the text.
        vector: A vector of length 1.
    """

    embedder: str
    hash: bytes
    vector: NDArray[np.float32]

    @property
    def key(self) -> tuple[str, bytes]:
        """What it is asked for by."""
        return self.embedder, self.hash


class ContextRecord(NamedTuple):
    """What a model was given to read.

    Attributes:
        key: Its content address.
        index_key: The key of the index.
        kept: For each chunk, as they stand in the context, its row, its rank, and its cosine with the question where
            that is known.
        dropped: How many chunks were left out, by reason.
    """

    key: str
    index_key: str
    kept: Sequence[tuple[int, int, float | None]]
    dropped: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class AnswerRecord:
    """The answer to a question in a cell, or why there is none.

    Attributes:
        cell: The key of the cell.
        question: The key of the question.
        status: Whether there is one.
        text: The answer.
        error: The class of the error, where it failed.
        message: What the error says.
        notes: What a reader should know.
        route: Which way `self_route` went.
        calls: The step and the content address of each reply that went into it.
        usage: The tokens of these calls, as if this cell were alone.
        embedded_tokens: The tokens of the texts that were embedded for it, in the embedder's unit, as if it were alone;
            those of the chunks of the documents are not among them.
        context_tokens: The tokens of the context of the question, in the reader's unit.
        context_embedder_tokens: The same in the embedder's unit: the sum of the tokens of its chunks.
        context_chunks: How many chunks are in it.
        context: What is in it.
        scores: The value of each metric that applies.
    """

    cell: str
    question: str
    status: Status
    text: str | None = None
    error: str | None = None
    message: str | None = None
    notes: Sequence[str] = ()
    route: str | None = None
    calls: Sequence[tuple[str, str]] = ()
    usage: Usage = field(default_factory=Usage)
    embedded_tokens: int = 0
    context_tokens: int | None = None
    context_embedder_tokens: int | None = None
    context_chunks: int | None = None
    context: ContextRecord | None = None
    scores: Mapping[str, float] = field(default_factory=dict)


class Measurement(NamedTuple):
    """What a part of an answer took.

    Attributes:
        cell: The key of the cell.
        question: The key of the question.
        attempt: Which of several it is, from 1.
        phase: "indexing" (splitting, embedding and storing, once for the documents of a question), "retrieval" or
            "generation".
        seconds: Wall time.
        cpu_percent: The share of all cores that it used.
        peak_memory_bytes: The most resident memory meanwhile.
        memory_growth_bytes: By how much that is more than before.
    """

    cell: str
    question: str
    attempt: int
    phase: Phase
    seconds: float
    cpu_percent: float
    peak_memory_bytes: int
    memory_growth_bytes: int


class FailedMeasurement(NamedTuple):
    """An answer that could not be measured.

    Attributes:
        cell: The key of the cell.
        question: The key of the question.
        error: The class of the error.
        message: What it says.
    """

    cell: str
    question: str
    error: str
    message: str


class CellRecord(NamedTuple):
    """A cell as it is written.

    Attributes:
        key: Its content address.
        values: Its value on every axis.
        identity: The identities of its embedder and its model, and of whatever else its answers depend on.
    """

    key: str
    values: Mapping[str, Any]
    identity: Mapping[str, Any]


class QuestionRecord(NamedTuple):
    """A question as it is written; everything but its key and its set is plain JSON."""

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


@dataclass(frozen=True)
class Spent:
    """What models were asked.

    Attributes:
        calls: How many calls were made, failed ones included.
        tokens: The tokens that they read and wrote.
        money: What they cost, where there are prices.
    """

    calls: int = 0
    tokens: int = 0
    money: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(self.calls + other.calls, self.tokens + other.tokens, self.money + other.money)

    def minus(self, other: Spent) -> Spent:
        """What is more than the other."""
        return Spent(self.calls - other.calls, self.tokens - other.tokens, self.money - other.money)


class MeasuredSoFar(NamedTuple):
    """What was measured.

    Attributes:
        attempts: The keys of cell and question, and the number of each attempt that was measured to its end.
        indexed: The keys of cell and question where making the index of the question's documents was measured.
        failed: Those that could not be measured in this run, with the class of the error.
    """

    attempts: set[tuple[str, str, int]]
    indexed: set[tuple[str, str]]
    failed: dict[tuple[str, str], str]


class Done(NamedTuple):
    """The answers that are there.

    Attributes:
        answered: The keys of cell and question of each answer that holds.
        failed: Those that failed, with the class of the error.
        broken: How many do not hold, since a reply that they were made of is missing or was changed.
    """

    answered: set[tuple[str, str]]
    failed: dict[tuple[str, str], str]
    broken: int


class AnswerSummary(NamedTuple):
    """An answer without its text.

    Attributes:
        cell: The place of the cell.
        question: The place of the question.
        failed: Whether there is none.
        error: The class of the error where it failed.
        message: What the error says.
        notes: What a reader should know, such as that the reply was empty.
        route: Which way `self_route` went.
        estimated: Whether the tokens of a reply are an estimate.
        calls: How many replies it is made of; this and the following are as if its cell were alone.
        input_tokens: The tokens that models read.
        output_tokens: The tokens that models wrote.
        cached_tokens: Those of the tokens read that a model had read before.
        embedded_tokens: The tokens that were embedded, in the embedder's unit.
        context_tokens: The tokens of the context; None without one.
        context_chunks: How many chunks are in it.
    """

    cell: int
    question: int
    failed: bool
    error: str | None
    message: str | None
    notes: tuple[str, ...]
    route: str | None
    estimated: bool
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    embedded_tokens: int
    context_tokens: int | None
    context_chunks: int | None


class AnswerText(NamedTuple):
    """What an answer says.

    Attributes:
        cell: The place of the cell.
        question: The place of the question.
        text: As many of its characters as are wanted.
        more: How many characters are left out.
        error: Why there is none, where it failed.
        notes: What a reader should know.
        route: Which way `self_route` went.
        context: The key of its context; None without one.
    """

    cell: int
    question: int
    text: str
    more: int
    error: str | None
    notes: Sequence[str]
    route: str | None
    context: str | None


class StoredContext(NamedTuple):
    """The context of an answer.

    Attributes:
        cell: The place of the cell.
        question: The place of the question.
        context: The context.
        chunks: How many chunks its index has.
    """

    cell: int
    question: int
    context: ContextRecord
    chunks: int


@dataclass(frozen=True)
class Failure:
    """Why questions have no answer.

    Attributes:
        error: The class of the error.
        message: What it says most often.
        count: How many questions in cells it cost.
    """

    error: str
    message: str
    count: int


class RunRecord(NamedTuple):
    """A run.

    Attributes:
        started: When it began, in UTC.
        ended: When it ended; None where it was killed, or goes on.
        outcome: How it ended.
        versions: What it ran on.
    """

    started: str
    ended: str | None
    outcome: str | None
    versions: Mapping[str, str]
