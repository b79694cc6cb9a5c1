"""A small experiment: questions about generated texts, an embedder of words, and models that keep a record."""

from __future__ import annotations

import hashlib
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.compare.experiment import Experiment
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.methods.answer import Completion
from tests.helpers import WORDS, prose
from tests.meeting import Meeting

__all__ = ["METHODS", "Judged", "RecordingModel", "Words", "experiment", "keepers", "reply_to", "rows", "text_of"]

METHODS = ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "reciprocal", "long_context", "self_route"]
_DIMENSION = 48


@cache
def _vector(word: str) -> NDArray[np.float32]:
    generator = np.random.default_rng(zlib.crc32(word.encode("utf-8", "surrogatepass")))
    return generator.standard_normal(_DIMENSION).astype(np.float32)


class Words:
    """Texts with the same words are near each other; letters alone count, so that numbered words are the same.

    It remembers what it was given.
    """

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.questions: list[str] = []
        self.documents: list[str] = []

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.questions += texts
        return self._embedded(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.documents += texts
        return self._embedded(texts)

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.ones((len(texts), _DIMENSION), dtype=np.float32)
        for number, text in enumerate(texts):
            for word in text.lower().split():
                vectors[number] += _vector("".join(filter(str.isalpha, word)))
        return vectors


def keepers(documents: int = 2, questions: int = 3, words: int = 400) -> DataSet:
    """Who keeps what, in texts of made-up words; each answer stands in one place, which is the evidence."""
    texts: dict[str, str] = {}
    asked: list[Question] = []
    for document in range(documents):
        name = f"book {document}"
        parts = prose(words, seed=document).split(" ")
        for number in range(questions):
            place = (number * 2 + 1) * len(parts) // (2 * questions)
            parts.insert(place, f"The keeper of the {WORDS[number]} number {document} is {WORDS[-1 - number].title()}.")
        text = texts[name] = " ".join(parts)
        for number in range(questions):
            fact = f"The keeper of the {WORDS[number]} number {document} is {WORDS[-1 - number].title()}."
            start = text.index(fact)
            asked.append(
                Question(
                    id=f"{document}-{number}",
                    text=f"Who is the keeper of the {WORDS[number]} number {document}?",
                    documents=(name,),
                    answers=(WORDS[-1 - number].title(),),
                    evidence=(Evidence(name, start, start + len(fact)),),
                )
            )
    return DataSet(name="keepers", documents=texts, questions=tuple(asked))


def reply_to(text: str) -> str:
    """A reply that every step can read, another one for each prompt, and always the same."""
    found = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    if "unanswerable" in text and int(found[0], 16) % 2:
        return "unanswerable"
    lines = [f"Who keeps the {WORDS[int(found[place], 16)]}?" for place in range(1, 5)]
    return "\n".join([*lines, f"Answer {found[:12]}", f"Confidence: {int(found[:2], 16) % 100}"])


class RecordingModel:
    """A model that remembers what it was asked.

    Args:
        reply: What it says.
        seconds: How long it takes.
        meeting: Where its calls wait for each other.
        fails: Whether it fails, told the prompt and how often that was asked before.
    """

    def __init__(
        self,
        reply: Callable[[str], Any] = reply_to,
        *,
        seconds: float = 0.0,
        meeting: Meeting | None = None,
        fails: Callable[[str, int], bool] = lambda text, before: False,
    ) -> None:
        self.calls: list[str] = []
        self.most_at_once = 0
        self._reply = reply
        self._seconds = seconds
        self._meeting = meeting
        self._fails = fails
        self._running = 0
        self._lock = threading.Lock()

    def __call__(self, text: str) -> str | Completion:
        with self._lock:
            before = self.calls.count(text)
            self.calls.append(text)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)
        try:
            if self._meeting:
                self._meeting.wait()
            if self._seconds:
                time.sleep(self._seconds)
            if self._fails(text, before):
                raise ConnectionRefusedError(f"no reply for {len(text)} characters")
            found: str | Completion = self._reply(text)
            return found
        finally:
            with self._lock:
                self._running -= 1


class Judged:
    """A model that answers, "reader", and one that judges, "judge"; both give another reply to each prompt."""

    def __init__(self) -> None:
        self.reader = RecordingModel(lambda text: f"Answer {zlib.crc32(text.encode())}")
        self.judge = RecordingModel(lambda text: f"Since it is so.\nGRADE: {'CPI'[zlib.crc32(text.encode()) % 3]}")

    @property
    def models(self) -> dict[str, ModelSpec]:
        return {"reader": ModelSpec(self.reader, "reader"), "judge": ModelSpec(self.judge, "judge")}

    @property
    def calls(self) -> dict[str, int]:
        return {"reader": len(self.reader.calls), "judge": len(self.judge.calls)}


def experiment(model: Any = None, *, grid: Any = None, data: DataSet | None = None, **options: Any) -> Experiment:
    """An experiment with the model "m" and the embedder "words"."""
    models: Mapping[str, Any] = {} if model is None else {"m": ModelSpec(model, "model")}
    given: dict[str, Any] = {
        "name": "small",
        "data": {"keepers": keepers() if data is None else data},
        "grid": {"k": 4, "chunk_size": 32} if grid is None else grid,
        "models": models,
        "embedders": {"words": EmbedderSpec(Words(), "words")},
        "score_embedder": EmbedderSpec(Words(), "words"),
        **options,
    }
    return Experiment(**given)


def rows(path: Any, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """What plain SQLite finds in a results file."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement, values).fetchall()


def text_of(report: Any) -> str:
    """Why a run ended, with a message that tests can show."""
    ended = f"{report.outcome}: {report.answered} of {report.total} answered"
    return f"{ended}, {report.failed} failed, {report.remaining} remaining"
