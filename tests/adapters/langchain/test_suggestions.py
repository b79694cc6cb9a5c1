"""Every line that a check prints, run as printed: then the check is clean, and retrieval in the order of the text."""

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from langchain_core.documents import Document

from oprag.langchain import OrderPreservingRetriever, check_positions, stamp_positions, write_positions
from tests.adapters.langchain.conftest import edited, prose, store_of
from tests.adapters.langchain.test_store_order import found, split, windows


class Case(NamedTuple):
    """A store with a problem.

    Attributes:
        stored: What was added to the store.
        right: The chunks in the order of the text; of several sources one after the other.
        line: How the printed line starts.
    """

    stored: Sequence[Document]
    right: Sequence[Document]
    line: str


def shuffled(documents: Sequence[Document]) -> list[Document]:
    return random.Random(2).sample(list(documents), len(documents))


CHUNKS, WINDOWS = split("a.txt", 1), windows("a.txt", 1)
OFFSETS = split("a.txt", 1, add_start_index=True)
VERSES = [Document(prose(9, at), metadata={"source": "a.txt", "verse": at}) for at in range(8)]
FILES = [
    Document(prose(20, 10 * file + at), metadata={"source": "upload", "file": f"{file}.txt", "start_index": 200 * at})
    for file in range(3)
    for at in range(5)
]
PARTS = [
    Document(prose(20, part), metadata={"source": f"https://a.example/b.html#{part}", "start_index": 200 * part})
    for part in range(6)
]
UNNAMED = [Document(document.page_content) for document in WINDOWS]
CASES = {
    "a sequence that nothing confirms": Case(CHUNKS, CHUNKS, "write_positions(store, read_source="),
    "parts with a gap": Case([*WINDOWS[12:], *WINDOWS[:9]], WINDOWS, "write_positions(store, read_source="),
    "stamps of two calls": Case(
        [*stamp_positions(CHUNKS[9:]), *stamp_positions(CHUNKS[:9])], CHUNKS, "write_positions(store, read_source="
    ),
    "another version": Case([*WINDOWS, *edited(WINDOWS)], WINDOWS, "store.delete(check_positions(store).ids("),
    "another version with offsets": Case(
        [*OFFSETS, *edited(OFFSETS)], OFFSETS, "store.delete(check_positions(store).ids("
    ),
    "another version without positions": Case([*CHUNKS, *edited(CHUNKS)], CHUNKS, "documents = stamp_positions("),
    "files of one name": Case(FILES, FILES, "write_positions(store, read_source="),
    "parts of a page": Case(PARTS[::-1], PARTS, "OrderPreservingRetriever(vectorstore=store, source_key=lambda"),
    "a key that counts": Case(
        shuffled(VERSES), VERSES, "OrderPreservingRetriever(vectorstore=store, position_key='verse')"
    ),
    "no source": Case(UNNAMED, UNNAMED, 'documents = stamp_positions(documents, source="...")'),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_makes_the_check_clean_and_the_order_right(name):
    case = CASES[name]
    store: Any = store_of(list(case.stored))
    line = next(one.suggestion for one in check_positions(store).sources if one.problem)
    assert line.startswith(case.line)
    names: dict[str, Any] = {
        "store": store,
        "documents": list(case.right),
        "check_positions": check_positions,
        "stamp_positions": stamp_positions,
        "write_positions": write_positions,
        "OrderPreservingRetriever": OrderPreservingRetriever,
    }
    exec(f"searched = {line}" if line.startswith("OrderPreservingRetriever") else line, names)
    if line.startswith("store.delete"):
        assert store.store == {}
        store.add_documents(list(case.right))
    elif line.startswith("documents"):
        store = store_of(names["documents"])
    searched = names.get("searched") or OrderPreservingRetriever(vectorstore=store)
    assert check_positions(searched).ok
    rank = {one.page_content: number for number, one in enumerate(case.right)}
    retriever = searched.model_copy(update={"k": 5, "stitch": False})
    for question in ("Who?", "What?", "Where?", "When?"):
        documents, messages = found(retriever, question)
        assert messages == []
        by_file: dict[Any, list[int]] = {}
        for document in documents:
            by_file.setdefault(document.metadata.get("file"), []).append(rank[document.page_content])
        assert all(ranks == sorted(ranks) for ranks in by_file.values())
