"""Threads, retrieval and streams of an engine whose question is given up."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from tests.adapters.llama_index.engine.conftest import Model, engine_of, parts
from tests.adapters.scripted import QUESTION
from tests.meeting import others, until


async def test_async_calls_take_no_thread():
    model = Model(seconds=0.01)
    engine = engine_of(model, 8, method="map_reduce")
    before = threading.active_count()
    await engine.aquery(QUESTION)
    assert threading.active_count() <= before


class Slow(BaseRetriever):
    """Takes its time, and knows when it is cancelled."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return parts()

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        self.begun += 1
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return parts()


async def test_cancelling_a_question_cancels_its_retrieval():
    retriever = Slow()
    task = asyncio.ensure_future(engine_of(Model(), retriever=retriever).aquery(QUESTION))
    await until(lambda: retriever.begun)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert retriever.cancelled == 1
    assert await others() == set()


def test_a_stream_that_nobody_reads_ends_with_its_response():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = engine_of(model, streaming=True).query(QUESTION)
    assert response.source_nodes
    assert model.running == 0  # it is asked, and not waited for
    pieces = response.response_gen
    assert next(pieces)
    assert model.running == 1
    del response, pieces
    gc.collect()
    assert (model.running, model.cut_off) == (0, 1)


async def test_an_async_stream_that_nobody_reads_ends_with_its_response():
    model = Model(reply=lambda prompt: "one two three four")
    response: Any = await engine_of(model, streaming=True).aquery(QUESTION)
    assert response.source_nodes
    assert model.running == 0
    pieces = response.async_response_gen()
    assert await anext(pieces)
    assert model.running == 1
    del response, pieces
    gc.collect()
    await until(lambda: model.running == 0)  # the loop closes one generator after the other
    assert await others() == set()
    assert (model.running, model.cut_off) == (0, 1)
