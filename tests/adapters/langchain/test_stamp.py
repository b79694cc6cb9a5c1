"""Stamping: chunks are numbered at ingestion, through whatever made them and wherever they go."""

import copy
import random
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

from oprag import PositionKind
from oprag.errors import ChunkError, MissingSourceError, OptionError
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


def test_sections_of_markdown_are_numbered_through():
    headers = [("#", "part"), ("##", "chapter")]
    sections = MarkdownHeaderTextSplitter(headers).split_text(MARKDOWN)
    chunks = RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=0, add_start_index=True).split_documents(
        sections
    )
    assert len(chunks) > len(sections) == 4
    stamped = stamp_positions(chunks, source="day.md")
    shuffled = random.Random(1).sample(stamped, len(stamped))
    found = OrderPreservingRetriever(retriever=giving(shuffled)).invoke(QUESTION)
    assert texts(found) == texts(chunks) != texts(shuffled)


def test_a_source_that_is_given_names_those_that_do_not_say():
    documents = [Document("x"), Document("y", metadata={"source": "own.txt"}), Document("z", metadata={"source": None})]
    stamped = stamp_positions(documents, source="book.txt")
    assert [(document.metadata["source"], document.metadata["chunk_index"]) for document in stamped] == [
        ("book.txt", 0),
        ("own.txt", 0),
        ("book.txt", 1),
    ]


def test_a_source_that_nothing_names_is_an_error():
    with pytest.raises(MissingSourceError, match=r"chunk 1 does not name its source \(metadata keys: page\)"):
        stamp_positions([Document("x", metadata={"source": "a"}), Document("y", metadata={"page": 1})])


@pytest.mark.parametrize("source", ["", "  ", 0.5j, [], True])
def test_a_name_that_is_none_is_refused(source: Any):
    with pytest.raises(OptionError, match="source must be"):
        stamp_positions([Document("x")], source=source)


@pytest.mark.parametrize("source_key", ["doc", ("missing", "doc"), lambda chunk: chunk.metadata["doc"]])
def test_the_source_can_have_another_name(source_key: Any):
    documents = [Document(text, metadata={"doc": text[0], "source": "all"}) for text in ("a1", "b1", "a2")]
    stamped = stamp_positions(documents, source_key=source_key)
    assert [document.metadata["chunk_index"] for document in stamped] == [0, 0, 1]


def test_no_documents():
    assert stamp_positions([]) == []
    assert stamp_positions(iter([])) == []


def test_documents_may_come_one_by_one():
    stamped = stamp_positions(Document(text, metadata={"source": "a"}) for text in "xyz")
    assert [document.metadata["chunk_index"] for document in stamped] == [0, 1, 2]


@pytest.mark.parametrize("wrong", [Document("one"), "text", [None], ["text"], [Document("x"), 5]], ids=repr)
def test_something_else_than_documents_is_refused(wrong: Any):
    with pytest.raises(ChunkError, match="LangChain documents"):
        stamp_positions(wrong, source="a")


def stamped_sentences(count: int = 30) -> list[Document]:
    return stamp_positions([Document(f"Sentence {number}.") for number in range(count)], source="book.txt")


def test_numbers_survive_a_store():
    stamped = stamped_sentences()
    found = OrderPreservingRetriever(vectorstore=store_of(stamped)).invoke(QUESTION)
    assert [document.metadata for document in found] == [document.metadata for document in stamped]


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


def test_stamped_chunks_that_follow_each_other_are_joined():
    found = OrderPreservingRetriever(
        retriever=giving(random.Random(3).sample(stamped_sentences(), 30)), stitch=True, separator=" "
    ).invoke(QUESTION)
    assert texts(found) == [" ".join(f"Sentence {number}." for number in range(30))]
