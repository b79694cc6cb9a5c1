"""Chunks of real stores are listed, and get metadata while all else stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document

from oprag.errors import OptionError
from oprag.stores import StoreAdapter
from oprag.stores.adapter import StoredChunk, adapter_of
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import Corpus, identify
from tests.integration.stores.known import KnownEmbeddings
from tests.integration.stores.langchain_stores import KINDS, Kind
from tests.integration.stores.rows import rows_of

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

NAMES = ("in_memory", "chroma_l2", "faiss_l2", "qdrant_dot", "qdrant_euclid", "lancedb_l2", "pgvector_cosine",
         "pgvector_async", "pgvectorstore_cosine", "pgvectorstore_l2", "pgvectorstore_ip")  # fmt: skip
STORES = [kind for kind in KINDS if kind.name in NAMES]
WRITTEN = [kind for kind in STORES if kind.name != "lancedb_l2"]
ORDERED = ("in_memory", "chroma_l2", "faiss_l2", "lancedb_l2")
SOURCES = ("it's.txt", "b.txt", "c.txt")
A_SOURCE = 20
ALL = len(SOURCES) * 2 * A_SOURCE


class Case(NamedTuple):
    """A store with chunks of three sources of two tenants."""

    kind: Kind
    store: Any
    documents: list[Document]
    embeddings: KnownEmbeddings
    question: str

    def adapter(self, tenant: str = "") -> StoreAdapter:
        found = adapter_of(self.store, {"filter": self.kind.only(tenant)} if tenant else {})
        assert found is not None
        return found

    def added(self) -> dict[str, dict[str, Any]]:
        """Positions for every second chunk, with as many keys as there may be."""
        chosen = list(self.adapter().chunks() or ())[::2]
        return {
            chunk.id or chunk.key: {
                "chunk_index": number,
                "chunk_numbering": f"né{number % 3}",
                **({"start_index": number * 100, "end_index": number * 100 + 99} if number % 2 else {}),
            }
            for number, chunk in enumerate(chosen)
        }

    def search(self) -> list[tuple[str, float]]:
        if self.kind.ways == ("async",):
            found = asyncio.run(self.store.asimilarity_search_with_score(self.question, k=30))
        else:
            found = self.store.similarity_search_with_score(self.question, k=30)
        return [(document.page_content, score) for document, score in found]


@pytest.fixture(scope="module")
def make(corpus: Corpus, places: Places) -> Iterator[Callable[[Kind, str], Case]]:
    with ExitStack() as stack:

        def made(kind: Kind, name: str) -> Case:
            embeddings = KnownEmbeddings(corpus)
            place = stack.enter_context(places(f"{kind.name}_{name}"))
            documents = [
                Document(
                    corpus.texts[number],
                    id=identify(place.name, "", number),
                    metadata=kind.puts(metadata_of(number)),
                )
                for number in range(ALL)
            ]
            return Case(
                kind, kind.make(documents, embeddings, place), documents, embeddings, next(iter(corpus.questions))
            )

        yield made


@pytest.fixture(scope="module")
def filled(make: Callable[[Kind, str], Case]) -> Callable[[Kind], Case]:
    """A store that nobody changes."""
    return cache(lambda kind: make(kind, "listed"))


def metadata_of(number: int) -> dict[str, Any]:
    """Metadata without a position."""
    return {
        "source": SOURCES[number % 3],
        "tenant": "red" if number % 2 else "blue",
        "weight": number / 10 + 0.05,
        "large": 1e22 + number,
        "checked": number % 3 == 0,
        "title": f'It\'s "part" {number}\nof 500 – é, 漢',
        "reviewer": None if number % 5 else "Ada",
    }


def known(chunks: Any) -> dict[str, StoredChunk]:
    listed = list(chunks)
    assert len({chunk.id or chunk.key for chunk in listed}) == len(listed)
    return {chunk.text: chunk for chunk in listed}


@pytest.mark.parametrize("kind", STORES, ids=str)
def test_everything_and_some_sources_and_a_tenant_are_listed(kind: Kind, filled: Callable[[Kind], Case]):
    case = filled(kind)
    listed = list(case.adapter().chunks() or ())
    if kind.name in ORDERED:
        assert [chunk.text for chunk in listed] == [document.page_content for document in case.documents]
    assert case.adapter().in_insertion_order == (kind.name in ORDERED)
    by_text = {document.page_content: document for document in case.documents}
    assert known(listed).keys() == by_text.keys()
    for chunk in listed:
        document = by_text[chunk.text]
        wanted = kind.gives(document.metadata)
        got = {key: value for key, value in chunk.metadata.items() if value is not None or key in wanted}
        if kind.name.startswith("chroma"):
            assert got.pop("weight") == pytest.approx(wanted.pop("weight"), rel=1e-14, abs=0)
        assert got == wanted
        assert (chunk.id or chunk.key) == document.id
    some = set(SOURCES[:2])
    for tenant in ("", "red"):
        wanted_texts = [
            document.page_content
            for document in case.documents
            if document.metadata["source"] in some and tenant in (document.metadata["tenant"], "")
        ]
        found = [chunk.text for chunk in case.adapter(tenant).chunks("source", some) or ()]
        assert sorted(found) == sorted(wanted_texts)
        if kind.name in ORDERED:
            assert found == wanted_texts
    assert len(list(case.adapter("blue").chunks() or ())) == ALL // 2
    assert list(case.adapter().chunks("source", {"elsewhere.txt"}) or ()) == []
    assert list(case.adapter().chunks("file_path", {"b.txt"}) or ()) == []
    many = {f"{number}.txt" for number in range(6_000)} | some
    assert len(list(case.adapter().chunks("source", many) or ())) == ALL * 2 // 3


@pytest.mark.parametrize("kind", WRITTEN, ids=str)
def test_only_the_metadata_changes(kind: Kind, make: Callable[[Kind, str], Case], postgres: Callable[[str], str]):
    case = make(kind, "written")
    found, before = case.search(), rows_of(case.store, postgres)
    case.embeddings.forget()
    added = case.added()
    assert case.adapter().writable
    case.adapter().write(added)
    assert case.embeddings.embedded == (0, 0)
    after = rows_of(case.store, postgres)
    assert [row[:3] for row in after] == [row[:3] for row in before]
    for old, new in zip(before, after, strict=True):
        assert new.metadata == {**old.metadata, **added.get(old.key, {})}
    assert case.search() == found
    for chunk in case.adapter("red").chunks("source", {"b.txt"}) or ():
        assert chunk.metadata.items() >= added.get(chunk.id or chunk.key, {}).items()
    # Again, with other values and one key only.
    case.adapter().write({key: {"chunk_index": 7} for key in added})
    for old, new in zip(after, rows_of(case.store, postgres), strict=True):
        assert new[:3] == old[:3]
        assert new.metadata == {**old.metadata, **({"chunk_index": 7} if old.key in added else {})}
    assert case.search() == found


@pytest.mark.parametrize("kind", WRITTEN, ids=str)
def test_unknown_ids_are_an_error_before_anything_is_written(
    kind: Kind, make: Callable[[Kind, str], Case], postgres: Callable[[str], str]
):
    case = make(kind, "unknown")
    before, added = rows_of(case.store, postgres), case.added()
    with pytest.raises(OptionError, match="chunk"):
        case.adapter().write({**added, identify("nothing", "red", 0): {"chunk_index": 1}})
    assert [row for row in rows_of(case.store, postgres) if "chunk_numbering" in row.metadata] == []
    assert rows_of(case.store, postgres) == before
