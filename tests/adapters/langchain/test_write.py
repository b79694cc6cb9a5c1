"""Positions are written into LangChain's stores in memory: retrievers are right and silent, and nothing is embedded."""

from __future__ import annotations

import hashlib
import random
import warnings
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag import ContextOptions, DocumentIndex
from oprag._internal.warn import forget
from oprag.errors import OptionError
from oprag.langchain import OrderPreservingRetriever, write_positions
from oprag.stores import adapter, register_store
from oprag.stores.in_memory import LangChainInMemory
from tests.adapters.langchain.conftest import prose
from tests.counting import CountingEmbeddings

QUESTION = "Where does the river end?"
TEXTS = {name: prose(500, seed) for name, seed in (("voyage.txt", 1), ("letters.txt", 2))}


def split(texts: Any = TEXTS, **metadata: Any) -> list[Document]:
    splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=60)
    return splitter.split_documents(
        [Document(text, metadata={"source": name, **metadata}) for name, text in texts.items()]
    )


def shuffled(documents: list[Document]) -> list[Document]:
    return random.Random(3).sample(documents, len(documents))


def store_of(documents: list[Document], kind: type[InMemoryVectorStore] = InMemoryVectorStore) -> Any:
    store = kind(CountingEmbeddings())
    store.add_documents(documents)
    return store


def state_of(store: Any) -> list[tuple[str, ...]]:
    """Hashes of all that may not change."""
    ours = ("chunk_index", "chunk_numbering", "start_index", "end_index")
    rows = [
        (key, row["text"], row["vector"], {name: value for name, value in row["metadata"].items() if name not in ours})
        for key, row in store.store.items()
    ]
    return [tuple(hashlib.sha256(repr(part).encode()).hexdigest() for part in row) for row in rows]


def asked(store: Any, **options: Any) -> tuple[list[Document], list[str]]:
    """What a new retriever finds, which does not ask the store for an order, and what it warns of."""
    retriever = OrderPreservingRetriever(**{"vectorstore": store, "k": 16, "store_order": False, **options})
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = retriever.invoke(QUESTION)
    return found, [str(one.message) for one in caught]


def in_order(documents: list[Document], texts: Any = TEXTS) -> bool:
    of_source = {
        name: [text.index(one.page_content) for one in documents if one.metadata["source"] == name]
        for name, text in texts.items()
    }
    return all(len(places) > 3 and places == sorted(places) for places in of_source.values())


@pytest.mark.parametrize("by_text", [False, True])
def test_the_order_is_right_afterwards_and_nothing_is_embedded(by_text: bool):
    store = store_of(shuffled(split()) if by_text else split())
    ranked, told = asked(store)
    assert not in_order(ranked)
    assert "have no position" in told[0]
    before = state_of(store)
    store.embeddings.forget()
    read_source = TEXTS if by_text else None
    given: Any = {"read_source": read_source, "trust_store_order": not by_text}
    planned = write_positions(store, **given, dry_run=True)
    assert not any("chunk_index" in row["metadata"] for row in store.store.values())
    written = write_positions(store, **given)
    assert (written.sources, written.added) == (planned.sources, planned.added)
    assert written.written == written.chunks == len(store.store)
    assert state_of(store) == before
    assert store.embeddings.embedded == (0, 0)
    found, told = asked(store)
    assert in_order(found)
    assert {one.id for one in found} == {one.id for one in ranked}
    assert told == []
    again = write_positions(store, **given)
    assert (again.written, again.known) == (0, 2)


def test_documents_that_were_found_before_do_not_change():
    store = store_of(split())
    held = store.similarity_search(QUESTION, k=9)
    assert write_positions(store, trust_store_order=True).written
    assert not any("chunk_index" in document.metadata for document in held)


def test_the_record_manager_of_index_sees_no_change():
    store, records = store_of([]), InMemoryRecordManager("positions")
    records.create_schema()

    def run(documents: list[Document]) -> Any:
        return index(documents, records, store, cleanup="incremental", source_id_key="source", key_encoder="sha256")

    run(split())
    write_positions(store, trust_store_order=True)
    store.embeddings.forget()
    assert run(split())["num_skipped"] == len(store.store)
    assert store.embeddings.documents == []
    assert asked(store)[1] == []
    # A changed document has new chunks, at the end of the store; the next call finds their places.
    changed = {**TEXTS, "voyage.txt": TEXTS["voyage.txt"].replace("of", "OF", 2)}
    assert 0 < run(split(changed))["num_added"] < 5
    assert asked(store, k=99)[1] != []
    written = write_positions(store, read_source=changed)
    assert [source.source for source in written.sources] == ["voyage.txt", "letters.txt"]
    found, told = asked(store, k=99)
    assert (in_order(found, changed), told) == (True, [])


# What is refused, and what fails.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"read_source": 5},
            "read_source must be a folder, a mapping, a function or the documents of a loader, got int",
        ),
        (
            {"read_source": lambda name, filter: ""},
            "read_source is a function that requires filter, but write_positions",
        ),
        ({"read_source": "/no/such/folder"}, "read_source must be an existing folder"),
        ({"source_key": 5}, "source_key must be"),
        ({"trust_store_order": 1}, "trust_store_order must be True or False, got 1"),
        ({"dry_run": "yes"}, "dry_run must be True or False, got 'yes'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str):
    with pytest.raises(OptionError, match=message):
        write_positions(store_of(split()), **options)


def test_what_cannot_be_written_to():
    for given in (
        store_of([]).as_retriever(),
        OrderPreservingRetriever(vectorstore=store_of([])),
        DocumentIndex.from_texts({"a": "b"}),
        ContextOptions(),
        None,
    ):
        message = f"cannot list and update the chunks of a {type(given).__name__}; if it searches a store, pass that"
        with pytest.raises(OptionError, match=message):
            write_positions(given)


def test_a_chunk_that_was_deleted_meanwhile(monkeypatch):
    class Deleting(InMemoryVectorStore):
        """A store in which another program deletes a chunk after it was listed."""

    class Adapter(LangChainInMemory):
        """Its adapter."""

        def chunks(self, field="", sources=()):
            listed = list(super().chunks(field, sources))
            self.store.delete([listed[3].key])
            return listed

    monkeypatch.setattr(adapter, "_registered", {})
    register_store(Deleting, Adapter)
    store = store_of(split(), Deleting)
    with pytest.raises(
        OptionError, match=r"has no chunk with the id .*, so nothing was written; if the store changed in the meantime"
    ):
        write_positions(store, trust_store_order=True)
    assert not any("chunk_index" in row["metadata"] for row in store.store.values())
