"""LanceDB."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from oprag.embedding.vectors import Record
from oprag.langchain.stores.adapter import StoreAdapter

__all__ = ["ADAPTER"]


def _read(store: Any, keys: Sequence[str], search: Mapping[str, Any]) -> Mapping[str, Record]:
    text, vector = store._text_key, store._vector_key  # noqa: SLF001 - the store says nowhere else
    wanted = ", ".join("'" + key.replace("'", "''") + "'" for key in keys)
    rows = (
        store.get_table(search.get("name"))
        .search()
        .where(f"{text} IN ({wanted})")
        .select([text, vector])
        # A text that stands at several places has the same vector at each of them.
        .limit(store.get_table(search.get("name")).count_rows())
        .to_arrow()
        .to_pylist()
    )
    return {row[text]: Record(row[vector], row[text]) for row in rows}


def _key(document: Document) -> str:
    """The text of a document: what this store finds has no id."""
    return document.page_content


def _alike(store: Any, search: Mapping[str, Any]) -> bool:  # noqa: ARG001
    """Whether words are not looked at."""
    return search.get("query_type") in (None, "vector")


ADAPTER = StoreAdapter(_read, key=_key, by_vector="similarity_search_by_vector", keywords={"score": True}, alike=_alike)
