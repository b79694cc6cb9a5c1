"""LanceDB: LangChain's `LanceDB`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from oprag.chunk import Chunk
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, as_texts

__all__ = ["LangChainLanceDB"]


class LangChainLanceDB(StoreAdapter):
    """LangChain's `LanceDB`; texts are the keys, because retrieved documents have no ids."""

    by_vector = "similarity_search_by_vector"
    by_vector_keywords: ClassVar = {"score": True}
    in_insertion_order = True
    filters = ("filter", "name")
    settings = ("metrics", "prefilter", "query_type", "score")

    @property
    def dense(self) -> bool:
        """Whether the search uses vectors only."""
        return self.search.get("query_type") in (None, "vector")

    def key(self, chunk: Chunk) -> str:
        """Return the text of a document."""
        return chunk.text

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Read the vectors of documents by text."""
        text, vector = self.store._text_key, self.store._vector_key  # noqa: SLF001 - no public attribute
        # Rows with equal texts have equal vectors.
        rows = self._rows(_among(text, keys), [text, vector])
        return {row[text]: StoredVector(row[vector], row[text]) for row in rows}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort texts by the order of the table."""
        text = self.store._text_key  # noqa: SLF001
        return [row[text] for row in self._rows(_among(text, keys), [text])]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the chunks in the order of the table, which deletions preserve."""
        import pyarrow as pa

        table, text, key = self._table, self.store._text_key, self.store._id_key  # noqa: SLF001
        kinds = {} if table is None else dict(zip(table.schema.names, table.schema.types, strict=True))
        # Tables of other programs have other columns.
        in_layout = key in kinds and isinstance(kinds.get("metadata"), pa.StructType)
        if not in_layout or "`" in field or not isinstance(self.search.get("filter"), str | dict | None):
            return None
        if field and kinds["metadata"].get_field_index(field) < 0:
            return ()
        named = _among(f"CAST(metadata.`{field}` AS string)", as_texts(sources)) if field else ""
        rows = self._rows(named, [text, "metadata", key])
        return (StoredChunk(row[text], row[text], row["metadata"] or {}, str(row[key])) for row in rows)

    @property
    def _table(self) -> Any:
        return self.store.get_table(self.search.get("name"))

    def _rows(self, condition: str, columns: list[str]) -> Iterator[dict[str, Any]]:
        """Read columns of the rows that match a condition, unless it is empty, and the filter of the search."""
        table, given = self._table, self.search.get("filter")
        if isinstance(given, dict):
            from langchain_community.vectorstores.lancedb import to_lance_filter

            given = to_lance_filter(given)
        where = " AND ".join(f"({one})" for one in (condition, given) if one)
        try:
            rows = _read(table, columns, where)
        except ValueError:
            if not where:
                raise
            # LanceDB 0.40 cannot filter a table whose rows differ in metadata keys; filter a copy instead.
            import lancedb

            copy = lancedb.connect("memory://").create_table("copy", _read(table, table.schema.names))
            rows = _read(copy, columns, where)
        yield from rows.to_pylist()


def _read(table: Any, columns: list[str], where: str = "") -> Any:
    """Read columns of the rows that match a condition (all rows if it is empty) as an Arrow table."""
    query = table.search().select(columns).limit(table.count_rows())
    return (query.where(where) if where else query).to_arrow()


def _among(column: str, values: Collection[str]) -> str:
    """Return the SQL condition that a column has one of these values."""
    quoted = ("'" + one.replace("'", "''") + "'" for one in values)
    return f"{column} IN ({', '.join(quoted)})"
