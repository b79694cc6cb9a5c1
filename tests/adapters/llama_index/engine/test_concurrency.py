"""Threads, retrieval and streams of an engine whose question is given up."""

from __future__ import annotations

import gc
from typing import Any

from tests.adapters.llama_index.engine.conftest import Model, engine_of
from tests.adapters.scripted import QUESTION
from tests.meeting import others, until


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
