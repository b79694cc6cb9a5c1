"""Async: the same answers as sync, with spans of its own, and without a thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from oprag import Context
from oprag.errors import BudgetError
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever
from tests.adapters.llama_index.conftest import ListRetriever, Spans, numbered, numbers

OPTIONS: list[dict[str, Any]] = [
    {},
    {"k": 2},
    {"token_budget": 70, "count_tokens": len},
    {"stitch": True},
    {"annotate": True},
    {"order": "random", "seed": 4},
]


class AsyncRetriever(BaseRetriever):
    """Has no sync side at all."""

    def __init__(self, nodes: list[NodeWithScore]) -> None:
        self.nodes = nodes
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise AssertionError("sync call inside of an async one")

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return list(self.nodes)


def _plain(nodes: list[NodeWithScore]) -> list[dict[str, Any]]:
    return [scored.to_dict() for scored in nodes]


def _plain_context(context: Context) -> dict[str, Any]:
    return context.to_dict()


@pytest.mark.parametrize("options", OPTIONS)
async def test_postprocessor_parity(options: dict[str, Any]):
    postprocessor, given = OrderPreservingPostprocessor(**options), numbered([7, 2, 9, 0])
    for question in ({}, {"query_str": "why?"}, {"query_bundle": QueryBundle("why?")}):
        waited_for = await postprocessor.apostprocess_nodes(given, **question)
        assert _plain(waited_for) == _plain(postprocessor.postprocess_nodes(given, **question))


@pytest.mark.parametrize("options", OPTIONS)
async def test_retriever_parity(options: dict[str, Any]):
    retriever = OrderPreservingRetriever(retriever=ListRetriever(numbered([7, 2, 9, 0])), **options)
    assert _plain(await retriever.aretrieve("why?")) == _plain(retriever.retrieve("why?"))
    assert _plain_context(await retriever.aget_context("why?")) == _plain_context(retriever.get_context("why?"))


async def test_async_calls_no_sync_retriever():
    retriever = OrderPreservingRetriever(retriever=AsyncRetriever(numbered([7, 2])))
    assert numbers(await retriever.aretrieve("why?")) == [2, 7]
    assert len((await retriever.aget_context("why?")).kept) == 2


async def test_there_is_no_thread():
    threads: set[int] = set()

    def counter(text: str) -> int:
        threads.add(threading.get_ident())
        return len(text)

    options: dict[str, Any] = {"token_budget": 1000, "count_tokens": counter}
    await OrderPreservingPostprocessor(**options).apostprocess_nodes(numbered([7, 2]))
    await OrderPreservingRetriever(retriever=ListRetriever(numbered([7, 2])), **options).aretrieve("why?")
    assert threads == {threading.get_ident()}


async def test_postprocessor_has_a_span_sync_and_async(spans: Spans):
    OrderPreservingPostprocessor().postprocess_nodes(numbered([1]))
    assert spans.seen == [("OrderPreservingPostprocessor._postprocess_nodes", None)]
    spans.seen.clear()
    await OrderPreservingPostprocessor().apostprocess_nodes(numbered([1]))
    assert spans.seen[0] == ("OrderPreservingPostprocessor._apostprocess_nodes", None)


async def test_a_failing_call_closes_its_span(spans: Spans):
    postprocessor = OrderPreservingPostprocessor(token_budget=1)
    with pytest.raises(BudgetError):
        postprocessor.postprocess_nodes(numbered([1]))
    with pytest.raises(BudgetError):
        await postprocessor.apostprocess_nodes(numbered([1]))
    assert len(spans.seen) >= 2
    assert not spans.open_spans
