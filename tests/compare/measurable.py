"""Models, embedders and stores with a known cost, for the processes that measure them; and an experiment of them."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from oprag.compare.measure.measure import measure_cells
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.spec.experiment import Experiment
from oprag.methods.model_calls import Completion, Usage
from tests.compare.helpers import Words, experiment, keepers, reply_to
from tests.compare.measure.working import burn, fill
from tests.meeting import Meeting

MODULE = "tests.compare.measurable"
# Each process that measures loads it: a token for each word takes no time to load.
TOKENIZER = f"huggingface:{Path(__file__).with_name('word_tokenizer.json')}"


def note(log: str, **what: Any) -> None:
    """Write a line about this process."""
    if log:
        beside = len(psutil.Process(os.getppid()).children()) - 1
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"pid": os.getpid(), "beside": beside, **what}) + "\n")


def noted(log: Path, kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [line for line in map(json.loads, lines) if line["kind"] == kind]


def model(
    log: str = "",
    *,
    seconds: float = 0.0,
    together: int = 1,
    cpu_seconds: float = 0.0,
    memory: int = 0,
    fails_on: str = "",
    dies_on: str = "",
    hangs_after: int = 0,
    tokens: int = 0,
    raises: bool = False,
    varies: bool = False,
) -> Callable[[str], Any]:
    """A model that takes what it is told to take, and fails or dies on a word unless LOG.mended is there.

    Its first calls wait until so many are made together.
    """
    made, meeting = 0, Meeting(together)

    def reply(text: str) -> Any:
        nonlocal made
        made += 1
        note(log, kind="call", text=text)
        mended = Path(f"{log}.mended").exists()
        if dies_on and dies_on in text and not mended:
            os.write(2, b"the model has a bad day\n")
            os._exit(7)
        if hangs_after and made > hangs_after and not mended:
            time.sleep(600)
        meeting.wait()
        time.sleep(seconds)
        if cpu_seconds:
            burn(cpu_seconds)
        if memory:
            fill(memory, 0.1)
        if fails_on and fails_on in text and not mended:
            raise ConnectionResetError("the line is dead")
        said = f"{reply_to(text)} {os.getpid()} {made}" if varies else reply_to(text)
        return Completion(said, usage=Usage(tokens, 0)) if tokens else said

    return reply


class Made:
    """A model with these settings, made anew by each process."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._reply = model(**settings)

    def __reduce__(self) -> Any:
        return Made, (self._settings,)

    def __call__(self, text: str) -> Any:
        return self._reply(text)


class Slow(Words):
    """Words that take their time, and note what they are given."""

    def __init__(self, log: str, question_seconds: float, document_seconds: float) -> None:
        super().__init__("slow words")
        self._log, self._seconds = log, (question_seconds, document_seconds)

    def embed_questions(self, texts: Sequence[str]) -> Any:
        note(self._log, kind="questions", texts=list(texts))
        time.sleep(self._seconds[0])
        return super().embed_questions(texts)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        note(self._log, kind="documents", texts=list(texts))
        time.sleep(self._seconds[1])
        return super().embed_documents(texts)


def embedder(log: str = "", question_seconds: float = 0.0, document_seconds: float = 0.0) -> Slow:
    return Slow(log, question_seconds, document_seconds)


class Broken(Words):
    """Embeds no document."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        raise ConnectionRefusedError("nobody embeds")


def slow_store(embeddings: Any) -> Any:
    """A store that takes half a second for a search."""
    from langchain_core.vectorstores import InMemoryVectorStore

    class SlowStore(InMemoryVectorStore):
        def similarity_search_with_score_by_vector(self, *given: Any, **options: Any) -> Any:
            time.sleep(0.5)
            return super().similarity_search_with_score_by_vector(*given, **options)

    return SlowStore(embeddings)


def measurable(
    grid: Any,
    *,
    asked: dict[str, Any] | None = None,
    embeds: dict[str, Any] | None = None,
    documents: int = 1,
    questions: int = 1,
    **options: Any,
) -> Experiment:
    """An experiment of what is in this module; the settings of the model are `asked`, of the embedder `embeds`."""
    given: dict[str, Any] = {
        "models": {"m": ModelSpec(Made(asked or {}), "model")},
        "embedders": {"words": EmbedderSpec(embedder(**(embeds or {})), "words", tokenizer=TOKENIZER)},
        "metrics": ["token_f1"],
        "data": keepers(documents, questions, words=200),
    }
    return experiment(None, grid={"k": 4, "chunk_size": 32} | grid, **{**given, **options})


def main() -> None:
    """Measure in a process that can be killed: FILE LOG SECONDS HANGS_AFTER."""
    path, log, seconds, hangs_after = sys.argv[1:]
    asked = {"log": log, "seconds": float(seconds), "hangs_after": int(hangs_after)}
    report = measure_cells(measurable(TWO, asked=asked, questions=2), path, warmup=0, repeats=2)
    sys.stdout.write(report.outcome)


TWO = {"order": ["source", "rank"]}
"""A grid of two cells, with one call for each question."""


if __name__ == "__main__":
    main()
