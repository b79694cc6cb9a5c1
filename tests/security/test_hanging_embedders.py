"""A tenant's embedder hangs. Others, who need the same texts from one cache, must not wait long for it."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import VectorCache
from oprag.langchain import OrderPreservingCompressor, as_embedder
from tests.counting import CountingEmbeddings
from tests.meeting import PATIENCE, Clock

DOCUMENTS = [Document(f"Text {number}.", metadata={"source": "a", "chunk_index": number}) for number in range(128)]
LONGEST = 60  # seconds that all texts together may cost another tenant


class HangingEmbeddings(CountingEmbeddings):
    """The model of all tenants, at a server that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.called = threading.Event()
        self.hang_up = threading.Event()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.called.set()
        self.hang_up.wait()
        raise ConnectionError("the server went away")


def compressor(embeddings: CountingEmbeddings, cache: VectorCache) -> OrderPreservingCompressor:
    return OrderPreservingCompressor(
        embeddings=as_embedder(embeddings, name="one model"), vector_cache=cache, redundancy_threshold=1.0
    )


@pytest.fixture
def shared() -> Iterator[VectorCache]:
    """A cache whose texts are being embedded by another tenant, and will be for as long as the test runs."""
    cache, hanging = VectorCache(), HangingEmbeddings()

    def ask() -> None:
        with pytest.raises(Exception, match="the server went away"):
            compressor(hanging, cache).compress_documents(DOCUMENTS, "question")

    other = threading.Thread(target=ask)
    other.start()
    assert hanging.called.wait(PATIENCE)
    yield cache
    hanging.hang_up.set()
    other.join()


def test_all_texts_have_one_deadline(shared, monkeypatch):
    clock, waited, wait, mine = Clock(monkeypatch), [], threading.Condition.wait, threading.current_thread()

    def jump(self: threading.Condition, timeout: float | None = None) -> bool:
        if timeout is None or threading.current_thread() is not mine:
            return wait(self, timeout)
        waited.append(timeout)
        clock.jump(timeout)
        return False

    monkeypatch.setattr(threading.Condition, "wait", jump)
    embeddings = CountingEmbeddings()
    compressor(embeddings, shared).compress_documents(DOCUMENTS, "question")
    assert len(embeddings.documents) == len(DOCUMENTS)
    assert sum(waited) <= LONGEST


def test_all_texts_have_one_deadline_in_async_code(shared, monkeypatch):
    clock, waited, answered = Clock(monkeypatch), [], False

    class Selector(selectors.DefaultSelector):
        """Lets the time pass at once for which an event loop would wait, until the documents are there."""

        def select(self, timeout: float | None = None) -> Any:
            # Closing the loop waits for its threads, which need real time.
            if answered or timeout is None or timeout <= 0:
                return super().select(timeout)
            waited.append(timeout)
            clock.jump(timeout)
            return super().select(0)

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return time.perf_counter()

    embeddings = CountingEmbeddings()
    with asyncio.Runner(loop_factory=lambda: Loop(Selector())) as runner:
        runner.run(compressor(embeddings, shared).acompress_documents(DOCUMENTS, "question"))
        answered = True
    assert len(embeddings.documents) == len(DOCUMENTS)
    assert sum(waited) <= LONGEST


def test_the_next_question_does_not_wait_again(shared, monkeypatch):
    Clock(monkeypatch).jump(LONGEST)
    # What was given up is nobody's, so the first to need it makes it, and keeps it for all others.
    for embedded in (len(DOCUMENTS), 0):
        embeddings = CountingEmbeddings()
        compressor(embeddings, shared).compress_documents(DOCUMENTS, "question")
        assert len(embeddings.documents) == embedded
