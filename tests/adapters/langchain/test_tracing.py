"""What callbacks and tracing see: one run of ours, the wrapped retriever's run inside it, and what is searched."""

from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.errors import BudgetError, ChunkError, QueryError
from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import Runs, giving, numbers_of
from tests.adapters.scripted import QUESTION, both_sides


@pytest.fixture
def runs() -> Runs:
    return Runs()


async def call(retriever: Any, *, is_async: bool, config: Any) -> list[Document]:
    found: list[Document] = (
        await retriever.ainvoke(QUESTION, config) if is_async else retriever.invoke(QUESTION, config)
    )
    return found


@both_sides
async def test_the_run_of_the_wrapped_retriever_is_a_child(store, runs, is_async: bool):
    retriever = OrderPreservingRetriever(retriever=store.as_retriever(search_kwargs={"k": 4}))
    found = await call(retriever, is_async=is_async, config={"callbacks": [runs]})
    outer, inner = runs.started
    assert outer["parent_run_id"] is None
    assert inner["parent_run_id"] == outer["run_id"]
    assert (outer["name"], inner["name"]) == ("OrderPreservingRetriever", "VectorStoreRetriever")
    assert runs.ended[outer["run_id"]] == found
    # The child gives the ranking, the parent the order.
    assert numbers_of(runs.ended[inner["run_id"]]) == numbers_of(store.similarity_search(QUESTION, k=4))


@both_sides
async def test_an_error_ends_the_run(store, runs, is_async: bool):
    retriever = OrderPreservingRetriever(vectorstore=store, token_budget=1)
    with pytest.raises(BudgetError) as caught:
        await call(retriever, is_async=is_async, config={"callbacks": [runs]})
    (run,) = runs.started
    assert runs.failed == {run["run_id"]: caught.value}
    assert not runs.ended


def test_bad_questions_and_wrong_documents_end_the_run_with_their_error(store, runs):
    with pytest.raises(QueryError):
        OrderPreservingRetriever(vectorstore=store).invoke(" ", {"callbacks": [runs]})
    with pytest.raises(ChunkError):
        OrderPreservingRetriever(retriever=giving(["text"])).invoke(QUESTION, {"callbacks": [runs]})
    assert [type(runs.failed[run["run_id"]]) for run in runs.started] == [QueryError, ChunkError]
