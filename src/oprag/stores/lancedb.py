"""LanceDB: LangChain's `LanceDB`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.positions.insertion import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainLanceDB"]


class LangChainLanceDB(StoreAdapter):
    """LangChain's `LanceDB`, whose documents have no ids: their texts are the keys."""

    by_vector = "similarity_search_by_vector"
    by_vector_keywords: ClassVar = {"score": True}
    in_insertion_order = True

    @property
    def dense(self) -> bool:
        """Whether this search compares vectors only."""
        return self.search.get("query_type") in (None, "vector")

    def key(self, chunk: Chunk) -> str:
        """The text of a document."""
        return chunk.text

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of documents by text."""
        text, vector = self.store._text_key, self.store._vector_key  # noqa: SLF001 - the store says nowhere else
        # A text that is in several rows has the same vector in each of them.
        rows = self._rows(_among(text, keys), [text, vector])
        return {row[text]: StoredVector(row[vector], row[text]) for row in rows}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """The texts in the sequence of the table."""
        text = self.store._text_key  # noqa: SLF001
        return [row[text] for row in self._rows(_among(text, keys) + self._filter, [text])]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """The chunks in the sequence of the table, which deletions and compaction keep."""
        text, given = self.store._text_key, self.search.get("filter")  # noqa: SLF001
        if "`" in field or (given is not None and not isinstance(given, str)):
            return None
        condition = _among(f"metadata.`{field}`", sources) if field else "true"
        rows = self._rows(condition + self._filter, [text, "metadata", self.store._id_key])  # noqa: SLF001
        return (
            StoredChunk(row[text], row[text], row["metadata"] or {}, str(row[self.store._id_key]))  # noqa: SLF001
            for row in rows
        )

    @property
    def _filter(self) -> str:
        given = self.search.get("filter")
        return f" AND ({given})" if isinstance(given, str) and given else ""

    def _rows(self, condition: str, columns: list[str]) -> list[dict[str, Any]]:
        table = self.store.get_table(self.search.get("name"))
        query = table.search().where(condition).select(columns).limit(table.count_rows())
        rows: list[dict[str, Any]] = query.to_arrow().to_pylist()
        return rows


def _among(column: str, values: Collection[str]) -> str:
    """The condition that a column has one of these values."""
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"
