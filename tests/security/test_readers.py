"""Functions of the user that read sources and neighbors: a client's error may hold a key, and our message does not."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import TextNode

from oprag import Chunk, build_context, langchain, llama_index
from oprag.errors import OptionError, SourceReadError
from tests.adapters.contract.frameworks import SOURCE, Framework, each_framework, each_way
from tests.adapters.llama_index.conftest import ListRetriever, ranked
from tests.adapters.scripted import by_step

ERROR = ConnectionError("cannot reach https://ada:swordfish@host/v1: refused")
MASKED = r"ConnectionError: cannot reach https://\*\*\*@host/v1: refused"


def failing(error: BaseException) -> Any:
    def read(*given: Any) -> Any:
        raise error

    return read


@each_framework
@each_way
@pytest.mark.parametrize("method", ["long_context", "self_route"])
async def test_errors_of_a_source_reader_are_masked(framework: Framework, method: str, way: str):
    answerer = framework.over(framework.model(reply=by_step), method, read_source=failing(ERROR))
    with pytest.raises(SourceReadError, match=f"read_source failed on source '{SOURCE}': {MASKED}") as caught:
        await framework.run(answerer, way)
    assert caught.value.__cause__ is ERROR


@each_framework
async def test_other_errors_of_a_source_reader_come_through(framework: Framework):
    for error in (OptionError("no such tenant", "ada"), KeyboardInterrupt()):
        answerer = framework.over(framework.model(reply=by_step), "long_context", read_source=failing(error))
        with pytest.raises(type(error)) as caught:
            await framework.run(answerer, "once")
        assert caught.value is error


def retrieving(framework: str, error: BaseException) -> Any:
    options: dict[str, Any] = {"neighbors": 1, "read_neighbors": failing(error)}
    about = {"source": "book", "chunk_index": 0}
    if framework == "llama_index":
        found = ListRetriever(ranked([TextNode(text="One.", metadata=about)]))
        return llama_index.OrderPreservingRetriever(retriever=found, **options)
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document("One.", metadata=about)])
    return langchain.OrderPreservingRetriever(vectorstore=store, **options)


async def context_of(retriever: Any, way: str) -> Any:
    return await retriever.aget_context("What?") if way == "async" else retriever.get_context("What?")


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_errors_of_a_neighbor_reader_are_masked(framework: str, way: str):
    with pytest.raises(SourceReadError, match=rf"a chunk \(rank 0, .* cannot be read: {MASKED}") as caught:
        await context_of(retrieving(framework, ERROR), way)
    assert caught.value.__cause__ is ERROR
    assert isinstance(caught.value.value, Chunk)
    own = OptionError("no such tenant", "ada")
    with pytest.raises(OptionError) as passed:
        await context_of(retrieving(framework, own), way)
    assert passed.value is own


def test_a_neighbor_reader_that_is_stopped_or_gives_nothing():
    chunks = [Chunk("One.", 0, "book", {"chunk_index": 0})]
    with pytest.raises(KeyboardInterrupt):
        build_context(chunks, neighbors=1, read_neighbors=failing(KeyboardInterrupt()))
    with pytest.raises(SourceReadError, match="TypeError"):
        build_context(chunks, neighbors=1, read_neighbors=lambda chunk, number: None)  # type: ignore[arg-type,return-value]


def test_notes_and_reports_of_sources_that_cannot_be_read_are_masked():
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(text, metadata={"source": "book"}) for text in ("One.", "Two.")])
    for found in (
        langchain.check_positions(store, read_source=failing(ERROR)),
        langchain.write_positions(store, read_source=failing(ERROR), dry_run=True),
    ):
        assert "https://***@host" in str(found)
        assert "swordfish" not in str(found)
