"""Responses have the types and the shapes of those of LlamaIndex's own engine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.base.response.schema import (
    PydanticResponse,
)
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore
from pydantic import BaseModel

from oprag.errors import ModelError
from tests.adapters.llama_index.conftest import ListRetriever, numbers
from tests.adapters.llama_index.engine.conftest import (
    Model,
    both_models,
    engine_of,
    every_way,
    full_engine,
    parts,
    respond,
    run,
)
from tests.adapters.scripted import QUESTION, both_sides, part_numbers


class Reply(BaseModel):
    verdict: str
    why: str


def built_in(model: Any, nodes: list[NodeWithScore], *, streaming: bool = False) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(ListRetriever(nodes), llm=model, streaming=streaming)


async def both(way: str, nodes: list[NodeWithScore], **options: Any) -> tuple[Any, Any]:
    """The response of the built-in engine, and ours."""
    streaming = way in {"stream", "astream"}
    theirs = built_in(Model(), nodes, streaming=streaming)
    ours = engine_of(Model(), retriever=ListRetriever(nodes), streaming=streaming, **options)
    if way in {"query", "stream"}:
        return theirs.query(QUESTION), ours.query(QUESTION)
    return await theirs.aquery(QUESTION), await ours.aquery(QUESTION)


@every_way
@pytest.mark.parametrize("count", [0, 1, 5])
async def test_the_types_are_those_of_the_built_in_engine(way: str, count: int):
    theirs, ours = await both(way, parts(count))
    assert type(ours) is type(theirs)
    assert {name for name in vars(ours) if not name.startswith("_")} == {
        name for name in vars(theirs) if not name.startswith("_")
    }


@every_way
async def test_source_nodes_are_the_same_objects_in_the_order_of_the_context(way: str):
    nodes = parts(5)
    theirs, ours = await both(way, nodes)
    assert numbers(theirs.source_nodes) == [4, 3, 2, 1, 0]
    assert numbers(ours.source_nodes) == [0, 1, 2, 3, 4]
    assert {id(node) for node in ours.source_nodes} == {id(node) for node in nodes}
    assert {id(node.node) for node in ours.source_nodes} == {id(node.node) for node in nodes}
    assert [node.score for node in ours.source_nodes] == [node.score for node in reversed(theirs.source_nodes)]


@every_way
async def test_metadata_holds_that_of_every_node_and_something_of_the_answer(way: str):
    theirs, ours = await both(way, parts(3))
    if way == "stream":
        ours.get_response()
    elif way == "astream":
        await ours.get_response()
    about = ours.metadata.pop("oprag")
    assert ours.metadata == theirs.metadata
    assert about["method"] == "stuff"
    assert about["calls"] == 1
    assert about["usage"]["estimated"] is True
    assert about["usage"]["input_tokens"] > 0


@every_way
async def test_source_nodes_are_known_before_the_answer_is_written(way: str):
    if way in {"query", "aquery"}:
        return
    response = await respond(engine_of(Model()), way)
    assert numbers(response.source_nodes) == [0, 1, 2, 3]
    assert set(response.metadata) == {"voyage-0", "voyage-1", "voyage-2", "voyage-3"}


@both_sides
@both_models
async def test_a_structured_model_gives_an_object(is_async: bool, chats: bool):
    inner = Model(chats=chats, reply=lambda prompt: '{"verdict": "yes", "why": "Part 2 says so."}')
    engine = engine_of(inner.as_structured_llm(Reply), prompts={})
    response: Any = await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)
    assert type(response) is PydanticResponse
    assert response.response == Reply(verdict="yes", why="Part 2 says so.")
    assert response.verdict == "yes"
    assert numbers(response.source_nodes) == [0, 1, 2, 3]
    assert part_numbers(inner.read[0]) == [0, 1, 2, 3]


@pytest.mark.parametrize("method", ["map_rerank", "step_down", "reciprocal", "self_route"])
def test_a_method_that_reads_replies_refuses_objects_before_anything_is_spent(method: str):
    inner = Model(reply=lambda prompt: '{"verdict": "yes", "why": "Why?"}')
    with pytest.raises(ValueError, match="returns objects"):
        full_engine(inner.as_structured_llm(Reply), method)
    engine: Any = full_engine(inner.as_structured_llm(Reply), "stuff")
    with pytest.raises(ValueError, match="returns objects"):
        engine.answer_with(QUESTION, ["stuff", method])
    assert inner.read == []


@both_sides
async def test_an_object_that_cannot_be_read_is_a_failed_call(is_async: bool):
    engine = engine_of(Model(reply=lambda prompt: "no JSON").as_structured_llm(Reply))
    with pytest.raises(ModelError, match="'answer' failed"):
        await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)


@both_sides
@both_models
async def test_a_structured_model_cannot_be_made_to_stream_nonsense(is_async: bool, chats: bool):
    """Few structured models stream; where one does not, the object comes whole."""
    inner = Model(chats=chats, reply=lambda prompt: '{"verdict": "yes", "why": "Part 2 says so."}')
    engine = engine_of(inner.as_structured_llm(Reply), streaming=True)
    response: Any = await engine.aquery(QUESTION) if is_async else engine.query(QUESTION)
    pieces = [piece async for piece in response.response_gen] if is_async else list(response.response_gen)
    assert Reply.model_validate_json("".join(pieces)) == Reply(verdict="yes", why="Part 2 says so.")


@every_way
@both_models
async def test_the_metadata_of_a_response_say_what_is_cited(way: str, chats: bool):
    engine = engine_of(Model(chats=chats, reply=lambda prompt: "He sailed [3], twice [1, 3]. [9]"), cite=True)
    text, response = await run(engine, way)
    cited = response.metadata["oprag"]["citations"]
    assert [one["number"] for one in cited] == [3, 1, 3]
    assert [text[one["start"] : one["end"]] for one in cited] == ["[3]", "[1, 3]", "[1, 3]"]
    assert [one["text"] for one in cited] == [f"Part {number} of voyage." for number in (2, 0, 2)]
    assert [one["source"] for one in cited] == ["voyage"] * 3
    by_id = {scored.node.node_id: scored for scored in response.source_nodes}
    assert [numbers([by_id[node_id] for node_id in one["ids"]]) for one in cited] == [[2], [0], [2]]
    assert json.loads(json.dumps(cited)) == cited
    assert cited == engine.answer(QUESTION).to_dict()["citations"]
