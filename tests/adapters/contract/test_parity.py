"""LangChain's chain and LlamaIndex's engine over the same texts: the same prompts in the same sequence, one answer."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.schema import TextNode

from oprag import ModelError
from oprag.langchain import OrderPreservingChain
from oprag.llama_index import OrderPreservingQueryEngine
from tests.adapters.langchain.chain.conftest import Found
from tests.adapters.langchain.chain.conftest import Model as LangChainModel
from tests.adapters.langchain.chain.conftest import run as run_chain
from tests.adapters.llama_index.conftest import ListRetriever, ranked
from tests.adapters.llama_index.engine.conftest import Model as LlamaIndexModel
from tests.adapters.llama_index.engine.conftest import run as run_engine
from tests.adapters.scripted import METHODS, QUESTION
from tests.helpers import WordEmbedder, prose

SOURCES = {name: prose(400, seed) for seed, name in enumerate(["north.txt", "south.txt"])}
# The roles of both frameworks, by the names that the methods give them.
ROLES = {"human": "user", "ai": "assistant", "system": "system", "user": "user", "assistant": "assistant"}
PAIRS = [("invoke", "query"), ("ainvoke", "aquery"), ("stream", "stream"), ("astream", "astream")]

every_pair = pytest.mark.parametrize(("chain_way", "engine_way"), PAIRS, ids=[pair[0] for pair in PAIRS])


def found() -> list[tuple[str, dict[str, Any]]]:
    """Pieces of both sources, some of which touch, with those of the other source between them; best first."""
    pieces = []
    for name, text in SOURCES.items():
        third = len(text) // 3
        pieces += [
            (text[start : start + 150], {"source": name, "start_index": start}) for start in (0, 150, third, 2 * third)
        ]
    return [pieces[place] for place in (5, 2, 7, 0, 4, 1, 6, 3)]


def reply(prompt: str, *, refuses: bool = True) -> str:
    """What fits the step, and depends on every word of the prompt; the models put blank lines in their own way."""
    number = zlib.crc32(" ".join(prompt.split()).encode())
    if "Confidence: <number>" in prompt:
        return f"Reranked {number} [1].\nConfidence: {number % 101}"
    if "One question a line" in prompt:
        return "\n".join(f"{count}. Who was {number + count}?" for count in range(1, 5))
    if 'the single word "unanswerable"' in prompt and refuses:
        return "Unanswerable."
    if "understood without the conversation" in prompt:
        return f"What about {number}?"
    return f"Answer {number} [1], and [2] so on."


def chain_of(**options: Any) -> tuple[OrderPreservingChain, LangChainModel]:
    model = LangChainModel(reply=options.pop("reply", reply))
    documents = [Document(text, metadata=metadata) for text, metadata in found()]
    return OrderPreservingChain(
        llm=model, retriever=Found(documents=documents), embeddings=WordEmbedder(), **_given(options)
    ), model


def engine_of(**options: Any) -> tuple[OrderPreservingQueryEngine, LlamaIndexModel]:
    model = LlamaIndexModel(reply=options.pop("reply", reply))
    nodes = [TextNode(text=text, metadata=metadata) for text, metadata in found()]
    retriever = ListRetriever(ranked(nodes))
    engine = OrderPreservingQueryEngine(llm=model, retriever=retriever, embed_model=WordEmbedder(), **_given(options))
    return engine, model


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "read_source": SOURCES,
        "answer_threshold": -1.0,
        "max_concurrency": 1,
        "passage_tokens": 60,
        **options,
    }


def said(calls: Sequence[Sequence[Any]]) -> list[list[tuple[str, str]]]:
    """The messages of each call."""
    return [
        [(ROLES[getattr(one, "type", None) or one.role.value], str(one.content)) for one in messages]
        for messages in calls
    ]


@every_pair
@pytest.mark.parametrize("method", METHODS)
async def test_the_same_prompts_and_answer(method: str, chain_way: str, engine_way: str):
    chain, chain_model = chain_of(method=method)
    engine, engine_model = engine_of(method=method)
    output = await run_chain(chain, chain_way, {"input": QUESTION})
    text, response = await run_engine(engine, engine_way)
    assert output["answer"] == text
    assert said(chain_model.calls) == said(engine_model.calls)
    assert engine_model.calls
    assert [document.page_content for document in output["context"]] == [one.text for one in response.source_nodes]


@pytest.mark.parametrize("method", METHODS)
async def test_all_eight_ways_are_one(method: str):
    seen = []
    for chain_way, engine_way in PAIRS:
        chain, chain_model = chain_of(method=method)
        engine, engine_model = engine_of(method=method)
        output = await run_chain(chain, chain_way, {"input": QUESTION})
        text, _ = await run_engine(engine, engine_way)
        seen += [(output["answer"], said(chain_model.calls)), (text, said(engine_model.calls))]
    assert len(seen) == 8
    assert seen[1:] == seen[:1] * 7


@every_pair
async def test_self_route_without_a_refusal(chain_way: str, engine_way: str):
    def replies(prompt: str) -> str:
        return reply(prompt, refuses=False)

    chain, chain_model = chain_of(method="self_route", reply=replies)
    engine, engine_model = engine_of(method="self_route", reply=replies)
    output = await run_chain(chain, chain_way, {"input": QUESTION})
    text, _ = await run_engine(engine, engine_way)
    assert output["answer"] == text
    assert said(chain_model.calls) == said(engine_model.calls)
    assert len(engine_model.calls) == 1


OPTIONS: list[dict[str, Any]] = [
    {"cite": True},
    {"k": 3, "order": "rank"},
    {"token_budget": 150, "header": "From {source}:", "gap": "[...]", "separator": "\n\n"},
    {"method": "map_reduce", "collapse_tokens": 30},
    {"method": "map_rerank", "rank_by": "cosine"},
    {"method": "step_down", "inner_method": "map_rerank", "variants": 3, "cite": True},
    {"method": "reciprocal", "inner_method": "refine", "answer_threshold": 0.9},
    {"method": "long_context", "source_token_budget": 300, "overflow": "truncate_middle"},
    {"method": "self_route", "inner_method": "refine", "source_token_budget": 300, "overflow": "truncate_end"},
]


@pytest.mark.parametrize("options", OPTIONS, ids="-".join)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_the_rich_answers_are_equal(options: dict[str, Any], is_async: bool):
    chain, chain_model = chain_of(**options)
    engine, engine_model = engine_of(**options)
    if is_async:
        ours, theirs = await chain.aanswer(QUESTION), await engine.aanswer(QUESTION)
    else:
        ours, theirs = chain.answer(QUESTION), engine.answer(QUESTION)
    assert said(chain_model.calls) == said(engine_model.calls)
    assert _values(ours) == _values(theirs)
    assert [citation[:3] for citation in ours.citations] == [citation[:3] for citation in theirs.citations]
    assert bool(ours.citations) is bool(options.get("cite"))


@pytest.mark.parametrize("method", METHODS)
async def test_a_conversation_and_choices(method: str):
    chain, chain_model = chain_of(method=method)
    engine, engine_model = engine_of(method=method)
    choices = ["a ship", "a {boat}"]
    ours = chain.answer(QUESTION, choices=choices, chat_history=[HumanMessage("Who?"), AIMessage("He.")])
    before = [
        ChatMessage(role=MessageRole.USER, content="Who?"),
        ChatMessage(role=MessageRole.ASSISTANT, content="He."),
    ]
    theirs = engine.answer(QUESTION, choices=choices, chat_history=before)
    assert said(chain_model.calls) == said(engine_model.calls)
    assert _values(ours) == _values(theirs)
    assert ours.standalone_question is not None


async def test_comparisons_are_equal():
    chain, chain_model = chain_of()
    engine, engine_model = engine_of()
    ours, theirs = chain.compare(QUESTION, METHODS), await engine.acompare(QUESTION, METHODS)
    assert said(chain_model.calls) == said(engine_model.calls)
    assert [_values(answer) for answer in ours] == [_values(answer) for answer in theirs]
    assert [answer.method for answer in theirs] == METHODS


@pytest.mark.parametrize("method", METHODS)
async def test_a_failure_is_recorded_alike(method: str):
    def failing(number: int) -> Exception | None:
        return TimeoutError("too slow") if number == 1 else None

    chain, chain_model = chain_of(method=method, on_error="skip")
    engine, engine_model = engine_of(method=method, on_error="skip")
    chain_model.error = engine_model.error = failing
    if method in {"stuff", "long_context"}:
        assert _values(chain.answer(QUESTION)) == _values(engine.answer(QUESTION))
        return
    if method == "self_route":
        # Its second call is the last one.
        with pytest.raises(ModelError, match="1 of 2 calls failed") as ours_failed:
            chain.answer(QUESTION)
        with pytest.raises(ModelError) as theirs_failed:
            engine.answer(QUESTION)
        assert str(ours_failed.value) == str(theirs_failed.value)
        return
    with pytest.warns(UserWarning, match="1 of"):
        ours = chain.answer(QUESTION)
    with pytest.warns(UserWarning, match="1 of"):
        theirs = engine.answer(QUESTION)
    assert said(chain_model.calls) == said(engine_model.calls)
    assert _values(ours) == _values(theirs)
    assert len(theirs.failed_calls) == 1


def _values(answer: Any) -> dict[str, Any]:
    """Everything of an answer but what a framework named and a clock measured."""
    values: dict[str, Any] = answer.to_dict()
    calls = [{**call, "seconds": 0} for call in values["calls"]]
    contexts = [context.text for context in answer.contexts]
    answers = [replace(one, passage=None) for one in answer.answers]
    citations = [(one["number"], one["source"], one["span"]) for one in values["citations"]]
    return values | {
        "calls": calls,
        "seconds": 0,
        "contexts": contexts,
        "answers": answers,
        "passages": [(passage.text, passage.spans) for passage in answer.passages],
        "citations": citations,
        "found": [[chunk.rank for chunk in context.kept] for context in answer.contexts],
    }
