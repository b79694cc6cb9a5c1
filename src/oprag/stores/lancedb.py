"""LanceDB: LangChain's `LanceDB`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from oprag.stores.adapter import StoreAdapter, StoredVector

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainLanceDB"]


class LangChainLanceDB(StoreAdapter):
    """LangChain's `LanceDB`, whose documents have no ids: their texts are the keys."""

    by_vector = "similarity_search_by_vector"
    by_vector_keywords: ClassVar = {"score": True}

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only."""
        return self.search.get("query_type") in (None, "vector")

    def key(self, chunk: Chunk) -> str:
        """The text of a document."""
        text: str = chunk.origin.page_content
        return text

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by text."""
        text, vector = self.store._text_key, self.store._vector_key  # noqa: SLF001 - the store says nowhere else
        wanted = ", ".join("'" + key.replace("'", "''") + "'" for key in keys)
        table = self.store.get_table(self.search.get("name"))
        # A text that is in several rows has the same vector in each of them.
        query = table.search().where(f"{text} IN ({wanted})").select([text, vector]).limit(table.count_rows())
        return {row[text]: StoredVector(row[vector], row[text]) for row in query.to_arrow().to_pylist()}
