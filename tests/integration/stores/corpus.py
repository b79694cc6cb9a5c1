"""Real chunks with real vectors, and what NumPy alone says about questions to them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pydoc_data.topics import topics
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oprag import LocalEmbedder, split_tokens

CHUNKS = 500
TENANTS = ("red", "blue")
FETCH_K, K = 128, 32
THRESHOLDS: dict[str, Any] = {"similarity_threshold": 0.2, "redundancy_threshold": 0.85}
OPTIONS: dict[str, Any] = {"k": K, "max_candidates": FETCH_K, **THRESHOLDS}

_CANDIDATES = [
    "What happens when an exception is raised inside a with statement?",
    "Which operators compare two values?",
    "What does the debugger do at a breakpoint?",
    "How is an attribute of a class looked up?",
    "What does the del statement remove?",
    "What happens when an exception is raised in a with statement?",
    "How are attributes of a class looked up?",
    "How are integers rounded?",
    "How are format strings written?",
    "What is the truth value of an object?",
]
# Stores round in ways of their own, so a question must not be decided by less than this.
_CLEAR = 5e-6


# Where a chunk stands, as metadata says it.
FORMS: dict[str, Callable[[int], dict[str, Any]]] = {
    "integer": lambda number: {"chunk_index": number},
    "float": lambda number: {"chunk_index": float(number)},
    "text": lambda number: {"chunk_index": str(number)},
    "offset": lambda number: {"start_index": number * 10_000},
    "page": lambda number: {"page": str(number // 4), "start_index": number % 4 * 10_000},
}


class Expected(NamedTuple):
    """What is kept of a question's candidates, in order, and why the others are not; chunks by number."""

    ranked: list[int]
    kept: list[int]
    reasons: dict[int, str]
    similarities: dict[int, float]
    figures: dict[int, float]


@dataclass(frozen=True)
class Corpus:
    """Chunks of one source, numbered in its order.

    Attributes:
        texts: Their texts, all of them different.
        starts: Where each begins in its source.
        vectors: Unit vectors, of shape (chunks, 256).
        questions: The vector of each question, not of unit length.
    """

    texts: list[str]
    starts: list[int]
    vectors: NDArray[np.float32]
    questions: dict[str, NDArray[np.float32]]

    def metadata(self, number: int, tenant: str) -> dict[str, Any]:
        """What stands beside a chunk in a store."""
        return {
            "source": "python-reference",
            "chunk_index": number,
            "start_index": self.starts[number],
            "end_index": self.starts[number] + len(self.texts[number]),
            "page": number // 8 + 1,
            "tenant": tenant,
            "weight": number / 10 + 0.05,
            "checked": number % 3 == 0,
            "title": f'It\'s "part" {number}\nof 500 – é, 漢',
            "reviewer": None if number % 2 else "Ada",
        }

    def cosine(self, question: str, number: int) -> float:
        vector = self.questions[question].astype(np.float64)
        return float(self.vectors[number] @ (vector / np.linalg.norm(vector)))

    def expected(self, question: str) -> Expected:
        """The answer, without the library and without a store."""
        vector = self.questions[question].astype(np.float64)
        cosines = self.vectors.astype(np.float64) @ (vector / np.linalg.norm(vector))
        ranked = np.argsort(-cosines)[:FETCH_K].tolist()
        staying: list[int] = []
        reasons, figures = {}, {}
        for number in ranked:
            nearness = [float(self.vectors[number] @ self.vectors[other]) for other in staying]
            if cosines[number] < THRESHOLDS["similarity_threshold"]:
                reasons[number], figures[number] = "similarity_threshold", float(cosines[number])
            elif nearness and max(nearness) >= THRESHOLDS["redundancy_threshold"]:
                reasons[number], figures[number] = "redundancy_threshold", max(nearness)
            else:
                staying.append(number)
        for number in staying[K:]:
            reasons[number], figures[number] = "k", float(K)
        similarities = {number: float(cosines[number]) for number in ranked}
        return Expected(ranked, sorted(staying[:K]), reasons, similarities, figures)

    def is_clear(self, question: str) -> bool:
        """Whether no rank and no decision hangs on rounding, and every reason occurs."""
        vector = self.questions[question]
        cosines = self.vectors @ (vector / np.linalg.norm(vector))
        best = np.sort(cosines)[::-1][: FETCH_K + 1]
        answer = self.expected(question)
        candidates = self.vectors[answer.ranked]
        margins = (
            -np.diff(best),
            np.abs(best - THRESHOLDS["similarity_threshold"]),
            np.abs(candidates @ candidates.T - THRESHOLDS["redundancy_threshold"]),
        )
        clear = min(float(margin.min()) for margin in margins) > _CLEAR
        return clear and set(answer.reasons.values()) == {*THRESHOLDS, "k"}


def read_corpus() -> Corpus:
    """Windows of 128 tokens of the Python language reference, and three clear questions."""
    embedder = LocalEmbedder()
    windows = {
        window.text: window.start
        for window in reversed(split_tokens("\n\n".join(topics.values()), embedder.tokenizer, chunk_size=128))
    }
    texts = sorted(windows, key=windows.__getitem__)[:CHUNKS]
    vectors = embedder.embed_documents(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    candidates = dict(zip(_CANDIDATES, embedder.embed_questions(_CANDIDATES), strict=True))
    corpus = Corpus(texts, [windows[text] for text in texts], vectors, candidates)
    clear = [question for question in candidates if corpus.is_clear(question)]
    assert len(texts) == CHUNKS
    assert len(clear) >= 3
    return Corpus(texts, corpus.starts, vectors, {question: candidates[question] for question in clear[:3]})


def identify(store: str, tenant: str, number: int) -> str:
    """The id of a chunk; PGVector's ids are those of one table, whatever the collection."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{store}/{tenant}/{number}"))
