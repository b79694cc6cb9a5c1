"""Events, spans and the older callbacks, as LlamaIndex's own engine fires them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, CBEventType
from llama_index.core.callbacks.schema import EventPayload
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer

from oprag.errors import ModelError
from tests.adapters.llama_index.conftest import Events, ListRetriever, Spans
from tests.adapters.llama_index.engine.conftest import (
    Handler,
    Model,
    both_models,
    engine_of,
    every_way,
    full_engine,
    parts,
    respond,
    run,
)
from tests.adapters.scripted import QUESTION, both_sides, by_step


def kinds(events: Events) -> list[type[Any]]:
    """The types of the events but for the pieces of streams."""
    return [type(event) for event in events.seen if "InProgress" not in type(event).__name__]


async def consumed(response: Any, way: str) -> None:
    if way == "stream":
        list(response.response_gen)
    elif way == "astream":
        _ = [piece async for piece in response.response_gen]


@every_way
@both_models
async def test_the_events_are_those_of_the_built_in_engine(way: str, chats: bool, events: Events):
    streaming = way in {"stream", "astream"}
    built_in = RetrieverQueryEngine.from_args(ListRetriever(parts()), llm=Model(chats=chats), streaming=streaming)
    theirs = await built_in.aquery(QUESTION) if way in {"aquery", "astream"} else built_in.query(QUESTION)
    await consumed(theirs, way)
    # The built-in engine has a synthesizer, and predicts by way of a template, of which it tells too.
    expected = [kind for kind in kinds(events) if not kind.__name__.startswith(("LLMPredict", "GetResponse"))]
    events.seen.clear()
    await consumed(await respond(engine_of(Model(chats=chats)), way), way)
    assert Counter(kinds(events)) == Counter(expected)
    if streaming:
        # The built-in engine makes the call when the first piece is asked for, ours when the query is made.
        assert [kind for kind in kinds(events) if "LLM" not in kind.__name__] == [
            kind for kind in expected if "LLM" not in kind.__name__
        ]
    else:
        assert kinds(events) == expected


@both_sides
async def test_a_failure_leaves_no_span_open(is_async: bool, spans: Spans):
    engine = engine_of(Model(error=lambda number: ValueError("no")), method="map_reduce")
    with pytest.raises(ModelError):
        await run(engine, "aquery" if is_async else "query")
    assert spans.open_spans == {}


def managed(**options: Any) -> tuple[Any, Handler]:
    """An engine whose model and retriever tell the same handler."""
    handler = Handler()
    manager = CallbackManager([handler])
    model = Model(reply=by_step, callback_manager=manager)
    retriever = ListRetriever(parts(), callback_manager=manager)
    return full_engine(model, retriever=retriever, callback_manager=manager, **options), handler


@every_way
@both_models
async def test_callbacks_are_those_of_the_built_in_engine(way: str, chats: bool):
    streaming = way in {"stream", "astream"}
    handler = Handler()
    manager = CallbackManager([handler])
    model = Model(callback_manager=manager, chats=chats)
    retriever = ListRetriever(parts(), callback_manager=manager)
    synthesizer = get_response_synthesizer(llm=model, callback_manager=manager, streaming=streaming)
    built_in = RetrieverQueryEngine(retriever, response_synthesizer=synthesizer, callback_manager=manager)
    theirs = await built_in.aquery(QUESTION) if way in {"aquery", "astream"} else built_in.query(QUESTION)
    await consumed(theirs, way)
    engine, ours = managed(method="stuff")
    engine.llm.chats = chats
    await run(engine, way)
    repacking = {CBEventType.TEMPLATING, CBEventType.CHUNKING}
    assert [kind for kind, _ in ours.started] == [kind for kind, _ in handler.started if kind not in repacking]
    assert sorted(ours.ended) == sorted(kind for kind in handler.ended if kind not in repacking)
    assert ours.started == [
        (CBEventType.QUERY, None),
        (CBEventType.RETRIEVE, CBEventType.QUERY),
        (CBEventType.SYNTHESIZE, CBEventType.QUERY),
        (CBEventType.LLM, CBEventType.SYNTHESIZE),
    ]
    assert ours.traces[0] == handler.traces[0] == "query"


@both_sides
async def test_callbacks_are_told_of_a_failure(is_async: bool):
    engine, handler = managed(method="stuff")
    engine.llm.error = lambda number: TimeoutError("too slow")
    with pytest.raises(ModelError):
        await run(engine, "aquery" if is_async else "query")
    payloads = dict(handler.payloads)
    assert isinstance(payloads[CBEventType.LLM][EventPayload.EXCEPTION], TimeoutError)
    assert isinstance(payloads[CBEventType.SYNTHESIZE][EventPayload.EXCEPTION], ModelError)
    begun = [kind for kind, _ in handler.started if kind is not CBEventType.EXCEPTION]
    assert sorted(handler.ended) == sorted(begun)


def test_postprocessors_get_the_callbacks_of_the_engine():
    first, second = SimilarityPostprocessor(), SimilarityPostprocessor()
    manager = CallbackManager([])
    built_in = RetrieverQueryEngine.from_args(
        ListRetriever(parts()), llm=Model(), node_postprocessors=[first], callback_manager=manager
    )
    assert first.callback_manager is built_in.callback_manager
    engine_of(Model(), node_postprocessors=[second], callback_manager=manager)
    assert second.callback_manager is manager
