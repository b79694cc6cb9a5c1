"""Stamping: chunks are numbered at ingestion, through whatever made them and wherever they go."""

import copy
import random
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag.errors import ChunkError
from oprag.langchain import OrderPreservingRetriever, stamp_positions
from tests.adapters.langchain.conftest import giving, store_of, texts
from tests.adapters.scripted import QUESTION

MARKDOWN = "\n\n".join(
    f"{'#' * level} {title}\n\n" + " ".join(f"{title} tells {thing} of {number}." for number in range(12))
    for level, title, thing in [(1, "Dawn", "birds"), (2, "Noon", "heat"), (1, "Dusk", "bats"), (2, "Night", "owls")]
)


def test_chunks_are_numbered_in_each_source():
    documents = [Document(text, metadata={"source": source}) for text, source in ("xa", "yb", "zb", "wa", "vb")]
    stamped = stamp_positions(documents)
    assert [(document.metadata["source"], document.metadata["chunk_index"]) for document in stamped] == [
        ("a", 0),
        ("b", 0),
        ("b", 1),
        ("a", 1),
        ("b", 2),
    ]


def test_copies_are_stamped_and_nothing_else_differs():
    documents = [Document("x", id="1", metadata={"source": "a", "page": 3, "nested": {"k": [1]}})]
    before = copy.deepcopy(documents)
    stamped = stamp_positions(documents)
    assert documents == before
    added = {"chunk_index": 0, "chunk_numbering": stamped[0].metadata["chunk_numbering"]}
    assert stamped == [Document("x", id="1", metadata={**before[0].metadata, **added})]


def test_pages_of_a_file_are_numbered_through():
    """A page loader gives one document a page, and the splitter's offsets restart on each."""
    pages = [
        Document(f"Page {page}. " + " ".join(f"Word {page}.{number}." for number in range(60)), metadata={"page": page})
        for page in range(3)
    ]
    chunks = RecursiveCharacterTextSplitter(chunk_size=200, chunk_overlap=20).split_documents(pages)
    stamped = stamp_positions(chunks, source="book.pdf")
    assert [document.metadata["chunk_index"] for document in stamped] == list(range(len(chunks)))
    assert {document.metadata["source"] for document in stamped} == {"book.pdf"}
    assert [document.metadata["page"] for document in stamped] == sorted(
        document.metadata["page"] for document in chunks
    )


def test_a_source_that_is_given_names_those_that_do_not_say():
    documents = [Document("x"), Document("y", metadata={"source": "own.txt"}), Document("z", metadata={"source": None})]
    stamped = stamp_positions(documents, source="book.txt")
    assert [(document.metadata["source"], document.metadata["chunk_index"]) for document in stamped] == [
        ("book.txt", 0),
        ("own.txt", 0),
        ("book.txt", 1),
    ]


@pytest.mark.parametrize("wrong", [Document("one"), "text", [None], ["text"], [Document("x"), 5]], ids=repr)
def test_something_else_than_documents_is_refused(wrong: Any):
    with pytest.raises(ChunkError, match="LangChain documents"):
        stamp_positions(wrong, source="a")


def stamped_sentences(count: int = 30) -> list[Document]:
    return stamp_positions([Document(f"Sentence {number}.") for number in range(count)], source="book.txt")


def test_numbers_survive_a_store_on_disk(tmp_path):
    store = store_of(stamped_sentences())
    path = str(tmp_path / "store.json")
    store.dump(path)
    loaded = InMemoryVectorStore.load(path, DeterministicFakeEmbedding(size=16))
    found = OrderPreservingRetriever(vectorstore=loaded).invoke(QUESTION)
    assert texts(found) == texts(stamped_sentences())


@pytest.mark.parametrize("changed", [str, float, lambda number: f"{number}.0", lambda number: f" {number} "])
def test_numbers_survive_a_store_that_changes_their_type(changed: Any):
    """Pinecone gives numbers back as floats, others as strings; 10 stays behind 9."""
    returned = [
        document.model_copy(
            update={"metadata": {**document.metadata, "chunk_index": changed(document.metadata["chunk_index"])}}
        )
        for document in stamped_sentences()
    ]
    shuffled = random.Random(2).sample(returned, len(returned))
    context = OrderPreservingRetriever(retriever=giving(shuffled)).get_context(QUESTION)
    assert [chunk.origin for chunk in context.kept] == returned
    assert [report.kind for report in context.sources] == [PositionKind.STAMPED]
