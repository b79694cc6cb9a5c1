"""What the FAISS adapter lists while a store changes, compared with a scan of the whole store."""

import random
import threading
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag.positions.source_names import source_name
from oprag.stores import faiss
from tests.counting import CountingEmbeddings
from tests.integration.stores.checks import adapter_of_store

pytestmark = pytest.mark.integration

# Not installed where the other tests run.
InMemoryDocstore: Any = pytest.importorskip("langchain_community.docstore.in_memory").InMemoryDocstore
FAISS: Any = pytest.importorskip("langchain_community.vectorstores").FAISS

SOURCES = ["a.pdf", "b.pdf", 7, "7", " ", None, "c.pdf"]


class Index:
    """Takes the place of the index of vectors."""

    def add(self, vectors: Any) -> None: ...

    def remove_ids(self, ids: Any) -> None: ...

    def merge_from(self, other: Any) -> None: ...


@pytest.fixture(autouse=True)
def without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langchain_community.vectorstores.faiss.dependable_faiss_import", lambda *_: None)


def store_with(sources: list[Any], first: int = 0) -> Any:
    store = FAISS(CountingEmbeddings(), Index(), InMemoryDocstore(), {})
    add(store, [(str(first + number), source) for number, source in enumerate(sources)])
    return store


def add(store: Any, chunks: list[tuple[str, Any]]) -> None:
    documents = [Document(f"chunk {key}", metadata={"source": source, "part": len(key)}) for key, source in chunks]
    if documents:
        store.add_documents(documents, ids=[key for key, _ in chunks])


def keys_of(store: Any, sources: list[str], **search: Any) -> list[str]:
    return [chunk.key for chunk in adapter_of_store(store, **search).chunks("source", sources) or ()]


def scan(store: Any, sources: list[str], part: int | None = None) -> list[str]:
    found = []
    for key in store.index_to_docstore_id.values():
        document = store.docstore.search(key)
        about = {} if isinstance(document, str) else document.metadata
        if source_name(about.get("source")) in sources and part in (None, about["part"]):
            found.append(key)
    return found


def assert_as_scanned(store: Any, chance: random.Random) -> None:
    for sources in (["a.pdf"], ["c.pdf", "7", "b.pdf"], ["never there"], ["new.pdf", "a.pdf"]):
        assert keys_of(store, sources) == scan(store, sources)
    part = chance.randrange(1, 4)
    assert keys_of(store, ["a.pdf", "7"], filter={"part": part}) == scan(store, ["a.pdf", "7"], part)
    stored = list(store.index_to_docstore_id.values())
    keys = {*chance.sample(stored, min(10, len(stored))), "missing"}
    assert adapter_of_store(store).in_sequence(keys) == [key for key in stored if key in keys]


def change_keys(store: Any, chance: random.Random, new: Iterator[str]) -> None:
    """Add, delete or merge, or delete and add again."""
    stored = list(store.index_to_docstore_id.values())
    # Often the last ones, whose rows do not change when they are added again.
    some = chance.choice([chance.sample(stored, min(len(stored), chance.choice([1, 2, 9]))), stored[-2:]])
    kind = chance.choice(["add", "merge", "delete", "again"]) if stored else "add"
    sources = [store.docstore._dict[key].metadata["source"] for key in some]
    if kind in ("delete", "again"):
        store.delete(some)
    if kind == "again":
        add(store, [*zip(some, sources, strict=True)])
    elif kind == "add":
        add(store, [(key, chance.choice(SOURCES)) for key in islice(new, chance.choice([1, 5, 9]))])
    elif kind == "merge":
        other = store_with([])
        add(other, [(key, chance.choice(SOURCES)) for key in islice(new, 3)])
        store.merge_from(other)


def change_metadata(store: Any, chance: random.Random) -> None:
    """Change the sources of stored documents in one of the ways in which users do."""
    documents = store.docstore._dict
    source = chance.choice([*SOURCES, "new.pdf"])
    some = chance.sample([*documents], min(len(documents), chance.choice([1, 2, 9])))
    kind = chance.choice(["replace", "edit", "edit all", "write"])
    if kind == "write":
        adapter_of_store(store).write({key: {"source": source} for key in some})
    for key in documents if kind == "edit all" else some:
        if kind == "replace":
            documents[key] = Document(f"chunk {key}", metadata={"source": source, "part": 1})
        else:
            documents[key].metadata["source"] = source if kind == "edit" else chance.choice(SOURCES)


@pytest.mark.parametrize("seed", range(40))
def test_listings_are_those_of_a_scan_whatever_changes(seed: int, monkeypatch: pytest.MonkeyPatch):
    chance, new = random.Random(seed), map("n{}".format, count())
    monkeypatch.setattr(faiss, "_BLOCK", chance.choice([1, 4, 256]))
    store = store_with([chance.choice(SOURCES) for _ in range(chance.choice([0, 1, 60]))])
    for _ in range(40):
        for _ in range(chance.choice([1, 1, 3])):
            if chance.random() < 0.5:
                change_keys(store, chance, new)
            else:
                change_metadata(store, chance)
        assert_as_scanned(store, chance)


def test_a_chunk_moved_to_another_source_is_noticed_in_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(faiss, "_IN_TURN", 10)
    store = store_with(["a.pdf", "b.pdf"] * 50)
    keys_of(store, ["b.pdf"])
    store.docstore._dict["30"].metadata["source"] = "b.pdf"
    for _ in range(10):
        listed = keys_of(store, ["b.pdf"])
    assert listed == scan(store, ["b.pdf"])


@pytest.mark.parametrize("asked", ["b.pdf", "new.pdf"])
def test_a_source_that_lost_a_chunk_and_a_new_source_are_right_at_once(asked: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(faiss, "_IN_TURN", 1)
    store = store_with(["a.pdf", "b.pdf"] * 50)
    keys_of(store, ["b.pdf"])
    store.docstore._dict["31"].metadata["source"] = "new.pdf"
    store.docstore._dict["30"].metadata["source"] = "b.pdf"
    assert keys_of(store, [asked]) == scan(store, [asked])


def test_threads_may_ask_while_another_adds_and_deletes():
    store = store_with(["a.pdf", "b.pdf"] * 200)
    fixed, wrong, done = scan(store, ["a.pdf"]), [], threading.Event()

    def ask() -> None:
        while not done.is_set():
            listed = keys_of(store, ["a.pdf"])
            sequence = adapter_of_store(store).in_sequence(fixed)
            if [key for key in listed if key in fixed] != fixed or sequence != fixed:
                wrong.append(listed)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(60):
        add(store, [(f"x{number}", "a.pdf"), (f"y{number}", "b.pdf")])
        if number % 3 == 2:
            store.delete([f"x{number}", f"y{number - 1}"])
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert keys_of(store, ["a.pdf", "b.pdf"]) == scan(store, ["a.pdf", "b.pdf"])
