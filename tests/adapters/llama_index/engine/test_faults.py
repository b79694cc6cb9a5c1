"""Failures of retrievers and embedding models, unreadable sources, and nodes that are too long for a prompt."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.prompts import PromptTemplate
from llama_index.core.response_synthesizers import Refine
from llama_index.core.schema import NodeWithScore, QueryBundle

from oprag.methods import MethodOptions
from tests.adapters.llama_index.conftest import ListRetriever, numbers, ranked, stamped_node
from tests.adapters.llama_index.engine.conftest import Model, engine_of, every_way, full_engine, parts, run
from tests.adapters.scripted import QUESTION, by_step


class Retrying(Model):
    """Tries again, as the clients of providers do."""

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        while True:
            try:
                return super().complete(prompt, formatted, **kwargs)  # type: ignore[no-any-return]
            except RuntimeError:
                continue


def test_with_the_retries_of_the_model_the_answer_arrives():
    model = Retrying(chats=False, reply=by_step, error=lambda number: RuntimeError("429") if number % 5 == 0 else None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = engine_of(model, 10, method="map_reduce", max_concurrency=1).answer(QUESTION)
    assert answer.failed_calls == ()
    assert len(answer.calls) == 11 < len(model.calls)


class Failing(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise LookupError("the index is gone")


@every_way
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_errors_of_a_retriever_are_its_own(way: str, on_error: str):
    model = Model()
    with pytest.raises(LookupError, match="the index is gone"):
        await run(engine_of(model, retriever=Failing(), on_error=on_error), way)
    assert model.calls == []


@every_way
async def test_a_source_that_is_too_long_is_cut_and_a_note_says_so(way: str):
    model = Model()
    engine = full_engine(
        model,
        "long_context",
        read_source={"voyage": "abcdefghij" * 10},
        source_token_budget=40,
        overflow="truncate_middle",
        count_tokens=len,
    )
    _, response = await run(engine, way)
    assert "[...]" in model.read[0]
    assert any("truncate_middle" in note for note in response.metadata["oprag"]["notes"])


def long_nodes() -> list[NodeWithScore]:
    """Two nodes, each with twelve words that are numbered in the order of the source; the later one ranks better."""
    text = [" ".join(f"w{number}" for number in range(start, start + 12)) for start in (0, 12)]
    nodes = [stamped_node(text[place], 5 * place, source="voyage") for place in (1, 0)]
    for node in nodes:
        node.excluded_llm_metadata_keys = list(node.metadata)
    return ranked(nodes)


def read_words(model: Model) -> list[list[int]]:
    """The words that each call read."""
    return [[int(number) for number in re.findall(r"\bw(\d+)\b", prompt)] for prompt in model.read]


def test_a_long_answer_does_not_turn_the_parts_of_a_node_round():
    """As it does in LlamaIndex (issue 23155), whose parts of a node that no longer fits come last one first."""
    text = "far " * 505
    theirs, ours = Model(reply=lambda prompt: text), Model(reply=lambda prompt: text)
    peer = Refine(
        llm=theirs,
        prompt_helper=PromptHelper(context_window=520, num_output=0, chunk_overlap_ratio=0, tokenizer=str.split),
        text_qa_template=PromptTemplate("{context_str} {query_str}"),
        refine_template=PromptTemplate("{existing_answer} {context_msg} {query_str}"),
    )
    peer.get_response(QUESTION, [scored.node.get_content() for scored in reversed(long_nodes())])
    words: dict[str, Any] = {"count_tokens": lambda given: len(given.split()), "passage_tokens": 7}
    engine_of(ours, method="refine", retriever=ListRetriever(long_nodes()), **words).query(QUESTION)
    read = read_words(ours)
    assert [number for numbers in read for number in numbers] == list(range(24))
    if sum(read_words(theirs), []) == list(range(24)):  # noqa: RUF017
        pytest.skip("this version of LlamaIndex reads in order too")
    assert [numbers[0] for numbers in read_words(theirs)][1:] == sorted(
        (numbers[0] for numbers in read_words(theirs)[1:]), reverse=True
    )


@every_way
@pytest.mark.parametrize("passage_tokens", [1, 5, 7, 12, 13, 24])
async def test_refine_reads_the_parts_of_a_node_in_their_order(way: str, passage_tokens: int):
    model = Model(reply=lambda prompt: "So far.")
    engine = engine_of(
        model,
        method="refine",
        retriever=ListRetriever(long_nodes()),
        passage_tokens=passage_tokens,
        count_tokens=lambda text: len(text.split()),
    )
    _, response = await run(engine, way)
    read = read_words(model)
    assert [number for numbers in read for number in numbers] == list(range(24))
    assert all(0 < len(numbers) <= passage_tokens for numbers in read)
    assert numbers(response.source_nodes) == [0, 5]


@every_way
@pytest.mark.parametrize("method", ["map_reduce", "map_rerank"])
async def test_others_read_the_parts_of_a_node_in_their_order(way: str, method: str):
    model = Model(reply=lambda prompt: "So.")
    engine = engine_of(
        model,
        method=method,
        retriever=ListRetriever(long_nodes()),
        passage_tokens=5,
        max_concurrency=1,
        count_tokens=lambda text: len(text.split()),
    )
    await run(engine, way)
    assert [number for numbers in read_words(model) for number in numbers] == list(range(24))


@every_way
async def test_nodes_are_not_changed(way: str):
    nodes = parts(4)
    before = [scored.model_dump_json() for scored in nodes]
    await run(full_engine(Model(reply=by_step), "step_down", retriever=ListRetriever(nodes), annotate=True), way)
    assert [scored.model_dump_json() for scored in nodes] == before


def test_the_empty_answer_is_not_the_models():
    answer = engine_of(Model(), retriever=ListRetriever([])).answer(QUESTION)
    assert answer.text == MethodOptions().empty_answer
    assert answer.notes == ("nothing was retrieved",)
