"""The tables of a results file, their keys, and their rows as plain values, which pydantic checks as they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, NotRequired, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, ConfigDict, Field, Json, with_config
from typing_extensions import TypedDict

from oprag._internal.files.database import Format
from oprag._internal.masking import error_text, without_keys
from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Prompt

__all__ = [
    "CELL_COLUMNS",
    "JUDGED",
    "RESULTS",
    "AnswerRecord",
    "CellRecord",
    "ContextRecord",
    "ExperimentRecord",
    "FailedCall",
    "Failure",
    "KeptChunk",
    "Masked",
    "QuestionRecord",
    "Reply",
    "RunRecord",
    "Spent",
    "Vector",
    "WorkCache",
    "error_message",
    "error_name",
    "key_of",
    "named_error",
    "prompt_key",
    "safe_text",
    "storable",
]

JUDGED = "metric:"  # prefix of the step of a judge's call; the name of the judge follows

# Increase when the same cell would be answered differently, so that old answers are not reused.
_FORMAT = 1
_LENGTH = 16  # bytes of a key


def key_of(kind: str, *parts: Any) -> str:
    """Key of a piece of work, derived from everything its result depends on, as 32 hexadecimal digits."""
    # ASCII escapes would make two surrogates equal to the character that they form as a pair.
    text = json.dumps([_FORMAT, kind, *parts], ensure_ascii=False, sort_keys=True, default=dict)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[: 2 * _LENGTH]


def prompt_key(model: str, prompt: Prompt, repeat: int) -> str:
    """Key of a model's reply, independent of the step; each repeat gets its own reply to the same prompt."""
    found = hashlib.sha256(f"{_FORMAT}\0{repeat}\0{model}\0".encode("utf-8", "surrogatepass"))
    for message in prompt.messages:
        content = message.content.encode("utf-8", "surrogatepass")
        # The length prevents collisions between messages with different boundaries.
        found.update(f"{message.role}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[: 2 * _LENGTH]


def storable(text: str) -> str:
    """Replace unpaired surrogates by U+FFFD, since UTF-8, and therefore SQLite, cannot encode them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Encoding as UTF-16 turns two surrogates that form a pair into their character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def safe_text(text: str) -> str:
    """Text in storable form, with secrets masked."""
    return without_keys(storable(text))


def error_message(error: BaseException | str | None, max_length: int | None = None) -> str:
    """Message of an error on one line, in storable form, with secrets masked."""
    return " ".join(storable(error_text(error)).split())[:max_length]


def error_name(error: BaseException | None) -> str:
    """Class of an error; for an error raised in another process, its class there."""
    return str(getattr(error, "remote_class", type(error).__name__))


def named_error(error: BaseException | None, max_length: int | None = None) -> str:
    """Class and message of an error."""
    return f"{error_name(error)}: {error_message(error, max_length)}"


Count = Annotated[int, Field(ge=0, le=10**12)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
Plain = bool | int | Number | str | None
Vector = NDArray[np.float32]
Masked = Annotated[str, AfterValidator(without_keys)]  # files of others may contain secrets in messages


@dataclass(frozen=True)
class Spent:
    """Model calls, including failed ones, their tokens (None if those of a call are unknown) and known price."""

    calls: int = 0
    tokens: int | None = 0
    money: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sum of both."""
        tokens = None if self.tokens is None or other.tokens is None else self.tokens + other.tokens
        return Spent(self.calls + other.calls, tokens, self.money + other.money)


class Reply(NamedTuple):
    """A model's reply."""

    key: str
    model: str  # its identity
    step: str  # step of the method that made the call first
    text: str
    usage: Json[Usage]
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


class WorkCache(Protocol):
    """Cache for work that is not repeated; safe to share between threads. See `ResultsFile`."""

    def reply(self, key: str) -> Reply | None: ...  # noqa: D102

    def put_reply(self, reply: Reply) -> Reply: ...  # noqa: D102

    def put_failure(self, call: FailedCall) -> None: ...  # noqa: D102

    def vectors(self, embedder: str, hashes: Sequence[bytes]) -> list[Vector | None]: ...  # noqa: D102

    def put_vectors(self, embedder: str, hashes: Sequence[bytes], vectors: Vector) -> None: ...  # noqa: D102


@with_config(ConfigDict(extra="allow"))
class Described(TypedDict):
    """Description of an experiment, with what the analysis relies on."""

    grid: list[dict[str, list[Plain]]]
    data: dict[str, Count]
    models: dict[str, str]
    embedders: dict[str, str]
    metrics: list[str]
    score_embedder: str | None
    count_tokens: str
    prompts: NotRequired[dict[str, str | None]]


class ExperimentRecord(NamedTuple):
    """An experiment with the keys of its cells and questions."""

    name: str
    described: Json[Described]
    cells: Json[Sequence[str]]
    questions: Json[Sequence[str]]


CELL_COLUMNS = (
    *("data", "splitter", "chunk_size", "chunk_overlap", "embedder", "search", "store", "order", "seed", "k"),
    *("token_budget", "similarity_threshold", "redundancy_threshold", "method", "model", "repeat"),
)
"""Axes whose values are always stored, and have their own column in the view of results."""


class CellRecord(NamedTuple):
    """A cell of an experiment."""

    key: str
    values: Json[Mapping[str, Plain]]  # on the axes above, and on others if not the default
    identity: Json[Mapping[str, Any]]  # of its embedder, its model, and everything else its answers depend on


class QuestionRecord(NamedTuple):
    """A question of a data set."""

    key: str
    data: str
    name: str
    question: str
    answers: Json[Sequence[str]]
    choices: Json[Sequence[str]]
    right_choice: Count | None
    evidence: Json[Sequence[tuple[str, Count, Count]]]
    documents: Json[Mapping[str, Count]]  # with their length in characters
    about: Json[Mapping[str, Any]]


class KeptChunk(NamedTuple):
    """A chunk of a context."""

    document: Count  # its index among the documents of the question
    start: Count  # offset in the whole text of the document
    end: Count  # exclusive
    rank: Count
    cosine: Number | None  # if known


class ContextRecord(NamedTuple):
    """A context passed to a model."""

    kept: Sequence[KeptChunk]  # in context order
    dropped: Mapping[str, Count]  # number of chunks by reason


class AnswerRecord(NamedTuple):
    """Answer to a question in a cell, or the error if it failed; calls and tokens include those shared with others."""

    cell: str  # its key
    question: str  # its key
    text: str | None = None
    error: str | None = None  # error class; None for an answer
    message: Masked | None = None
    notes: Json[Sequence[Masked]] = ()
    route: str | None = None  # of self_route
    calls: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    cached_tokens: Count = 0
    estimated: bool = False  # whether any token count is an estimate
    embedded_tokens: Count = 0  # of texts other than chunks, by the embedder's tokenizer
    context_tokens: Count | None = None  # by the token counter of the experiment
    context_embedder_tokens: Count | None = None  # of the context's chunks, by the embedder's tokenizer
    context_chunks: Count | None = None
    seconds: Number | None = None  # as in `Measurement`; None if the answer was not measured
    cpu_seconds: Number | None = None
    peak_memory_mib: Number | None = None
    context: Json[ContextRecord] | None = None
    scores: Json[Mapping[str, Number]] = {}  # noqa: RUF012 - by metric; only metrics that apply
    replies: Json[Sequence[tuple[str, str]]] = ()  # step and key of each, those of judges last

    @property
    def failed(self) -> bool:
        """Whether answering failed."""
        return self.error is not None

    @property
    def tokens(self) -> int | None:
        """Input and output tokens; None if an own pipeline did not report them."""
        total = self.input_tokens + self.output_tokens
        return total if total or not self.estimated else None


class Failure(NamedTuple):
    """Failed questions with the same error class: its most frequent message, their number, and that of the message."""

    error: str
    message: str
    count: int  # type: ignore[assignment]  # hides a method of tuples
    same: int

    def describe(self) -> str:
        """The message, and how often it occurred if there were others."""
        return self.message if self.same == self.count else f"{self.message} ({self.same:,} times, and other messages)"


class RunRecord(NamedTuple):
    """A run: start, end, outcome, and versions of the software."""

    started: str
    ended: str | None  # None if it was killed or is in progress
    outcome: Masked | None
    versions: Json[Mapping[str, str]]


_USAGE = (
    "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, "
    "estimated INTEGER NOT NULL CHECK (estimated IN (0, 1))"
)
# Own pipelines may not report their tokens; then none are counted.
_UNKNOWN = "{0}estimated AND {0}input_tokens + {0}output_tokens = 0"
_TOKENS = ", ".join(
    f"iif({_UNKNOWN.format('answers.')}, NULL, answers.{name}) AS {name}"
    for name in ("input_tokens", "output_tokens", "cached_tokens")
)
_AXES = ", ".join(f"""json_extract(cells."values", '$.{name}') AS "{name}\"""" for name in CELL_COLUMNS)
_OTHERS = ", ".join(f"'$.{name}'" for name in CELL_COLUMNS)
_PURPOSE = f"CASE WHEN step LIKE '{JUDGED}%' THEN substr(step, {len(JUDGED) + 1}) ELSE 'answers' END AS purpose"

# Lists and mappings are JSON; `cells` and `questions` of an experiment are lists of keys.
_SCHEMA = f"""
CREATE TABLE experiments (name TEXT NOT NULL PRIMARY KEY, described TEXT NOT NULL, cells TEXT NOT NULL,
    questions TEXT NOT NULL) STRICT;
CREATE TABLE runs (id INTEGER PRIMARY KEY, experiment TEXT NOT NULL REFERENCES experiments, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, versions TEXT NOT NULL) STRICT;
CREATE TABLE cells (key TEXT NOT NULL PRIMARY KEY, "values" TEXT NOT NULL, identity TEXT NOT NULL) STRICT;
CREATE TABLE questions (key TEXT NOT NULL PRIMARY KEY, data TEXT NOT NULL, name TEXT NOT NULL, question TEXT NOT NULL,
    answers TEXT NOT NULL, choices TEXT NOT NULL, right_choice INTEGER, evidence TEXT NOT NULL,
    documents TEXT NOT NULL, about TEXT NOT NULL) STRICT;
CREATE TABLE replies (key TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL, step TEXT NOT NULL, text TEXT NOT NULL,
    {_USAGE}, finish_reason TEXT, seconds REAL NOT NULL, money REAL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX replies_by_run ON replies (run);
CREATE TABLE failed_calls (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, step TEXT NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL) STRICT;
CREATE TABLE answers (cell TEXT NOT NULL REFERENCES cells, question TEXT NOT NULL REFERENCES questions,
    status TEXT NOT NULL AS (iif(error IS NULL, 'answered', 'failed')), text TEXT, error TEXT, message TEXT,
    notes TEXT NOT NULL, route TEXT, calls INTEGER NOT NULL, {_USAGE}, embedded_tokens INTEGER NOT NULL,
    context_tokens INTEGER, context_embedder_tokens INTEGER, context_chunks INTEGER, seconds REAL, cpu_seconds REAL,
    peak_memory_mib REAL, context TEXT, scores TEXT NOT NULL, replies TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs, PRIMARY KEY (cell, question),
    CHECK ((seconds IS NULL) + (cpu_seconds IS NULL) + (peak_memory_mib IS NULL) IN (0, 3))) STRICT;
{VECTOR_SCHEMA}
CREATE VIEW results AS SELECT experiments.name AS experiment, {_AXES},
    json_remove(cells."values", {_OTHERS}) AS options, questions.name AS question_id, questions.question,
    answers.status, answers.text AS answer, answers.error, answers.message, answers.notes, answers.route,
    answers.calls, {_TOKENS}, answers.estimated,
    answers.embedded_tokens, answers.context_tokens, answers.context_embedder_tokens, answers.context_chunks,
    answers.seconds, answers.cpu_seconds, answers.peak_memory_mib, answers.scores
    FROM experiments JOIN json_each(experiments.cells) AS cell JOIN json_each(experiments.questions) AS asked
    JOIN answers ON answers.cell = cell.value AND answers.question = asked.value
    JOIN cells ON cells.key = answers.cell JOIN questions ON questions.key = answers.question;
CREATE VIEW spending AS SELECT runs.experiment, model, purpose, sum(calls) AS calls,
    iif(count(tokens) = count(*), sum(tokens), NULL) AS tokens, sum(money) AS money FROM (
        SELECT run, model, {_PURPOSE}, 1 AS calls, coalesce(money, 0.0) AS money,
        iif({_UNKNOWN.format("")}, NULL, input_tokens + output_tokens) AS tokens FROM replies
        UNION ALL SELECT run, model, {_PURPOSE}, 1, 0.0, 0 FROM failed_calls
    ) JOIN runs ON runs.id = run GROUP BY runs.experiment, model, purpose;
"""

RESULTS = Format(
    noun="results file",
    application=0x6F705265,  # "opRe"
    version=1,
    schema=_SCHEMA,
    error=ResultsFileError,
    advice="keep a copy and start a new file; `sqlite3 FILE .recover` saves the readable rows",
    checked=True,
)
