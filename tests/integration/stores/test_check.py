"""What a check says of real stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from oprag import PositionCheck
from oprag.langchain import check_positions
from tests.integration.stores.test_store_order import STORES, add, store_of, windows

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def sources(found: PositionCheck) -> dict[str | None, tuple[int, bool]]:
    """The number of chunks of each source, and whether it is in order."""
    return {source.source: (source.chunks, not source.problem) for source in found.sources}


def edited(documents: list[Document]) -> list[Document]:
    return [
        document.model_copy(update={"page_content": document.page_content.replace("e", "E", number % 2)})
        for number, document in enumerate(documents)
    ]


@pytest.mark.parametrize("name", STORES)
def test_a_filter_is_that_of_the_retriever(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    add(store, [*windows("a.txt", 1), *windows("b.txt", 2, tenant="blue", count=40)])
    only_blue: Any = "metadata.tenant = 'blue'" if name == "lancedb" else {"tenant": "blue"}
    retriever = store.as_retriever(search_kwargs={"filter": only_blue})
    assert sources(check_positions(retriever)) == {"b.txt": (40, True)}


@pytest.mark.parametrize("name", STORES)
def test_the_line_deletes_a_source_that_was_added_twice(name: str, tmp_path: Path):
    store = store_of(name, tmp_path)
    chunks = windows("a's.txt", 1)
    for documents in (chunks, windows("b.txt", 2), edited(chunks)):
        add(store, documents)
    found = check_positions(store)
    assert sources(found) == {"a's.txt": (120, False), "b.txt": (60, True)}
    line = found.sources[0].suggestion
    assert line.startswith("store.delete(")
    exec(line, {"store": store, "check_positions": check_positions})
    assert sources(check_positions(store)) == {"b.txt": (60, True)}
    add(store, chunks)
    assert sources(check_positions(store)) == {"a's.txt": (60, True), "b.txt": (60, True)}
