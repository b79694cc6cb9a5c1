"""LanceDB: LangChain's `LanceDB`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.errors import OptionError
from oprag.masking import describe
from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter, StoredVector

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainLanceDB"]

_OWN_INDEX = "oprag_ids"
_STRINGS = ("string", "large_string")
# Indexes that have no settings.
_MADE_AGAIN = {"BTree", "Bitmap", "LabelList"}


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
        """The chunks in the sequence of the table, which deletions keep."""
        if "`" in field or not isinstance(self.search.get("filter"), str | dict | None):
            return None
        if field and not sources:
            return ()
        about = self._about
        if about is None:
            return None
        if field and str(about.field(field).type if about.get_field_index(field) >= 0 else "") not in _STRINGS:
            return []
        condition = _among(f"metadata.`{field}`", sources) if field else "true"
        text, key = self.store._text_key, self.store._id_key  # noqa: SLF001
        rows = self._rows(condition + self._filter, [text, "metadata", key])
        return (StoredChunk(row[text], row[text], row["metadata"] or {}, str(row[key])) for row in rows)

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Change the metadata of all rows in one version of the table, and move no row."""
        table, about, key = self._table, self._about, self.store._id_key  # noqa: SLF001
        if about is None:
            super().write(added)
        import pyarrow as pa
        from lancedb import index as kinds

        rows = _all_rows(table, [key, "metadata"])
        ids = [str(one) for one in rows[key].to_pylist()]
        self.refuse_unknown(added, set(ids))
        wanted = [one for one in ids if one in added]
        if len(wanted) > len(added):
            raise OptionError(f"{self.name} has several rows with the same id", wanted)
        changed = rows.filter(pa.array([one in added for one in ids])).combine_chunks()
        metadata = _merged(changed["metadata"], [added[one] for one in wanted])
        indexes = [index for index in table.list_indices() if index.name != _OWN_INDEX]
        affected = [index for index in indexes if index.columns[0].split(".")[0] in (key, "metadata")]
        for index in affected:
            if index.index_type not in _MADE_AGAIN:
                message = f"the index {describe(index.name)} would be lost: drop it and create it again afterwards"
                raise OptionError(message, index.name)
        new = pa.field("metadata", pa.struct(list(metadata.type)[about.num_fields :]))
        _replace(table, key, new, pa.table({key: changed[key], "metadata": metadata}))
        # Indexes leave out the rows whose columns were written; one that has none left breaks `optimize`.
        for index in affected:
            table.create_index(index.columns[0], config=getattr(kinds, index.index_type)(), name=index.name)

    @property
    def _table(self) -> Any:
        return self.store.get_table(self.search.get("name"))

    @property
    def _about(self) -> Any:
        """The fields of metadata, a struct of Arrow; None where the table is not as LangChain makes it."""
        import pyarrow as pa

        table = self._table
        if table is None or not {"metadata", self.store._id_key} <= set(table.schema.names):  # noqa: SLF001
            return None
        kind = table.schema.field("metadata").type
        return kind if pa.types.is_struct(kind) else None

    @property
    def _filter(self) -> str:
        given = self.search.get("filter")
        if isinstance(given, dict):
            from langchain_community.vectorstores.lancedb import to_lance_filter

            given = to_lance_filter(given)
        return f" AND ({given})" if isinstance(given, str) and given else ""

    def _rows(self, condition: str, columns: list[str]) -> list[dict[str, Any]]:
        table = self._table
        query = table.search().where(condition).select(columns).limit(table.count_rows())
        rows: list[dict[str, Any]] = query.to_arrow().to_pylist()
        return rows


def _all_rows(table: Any, columns: list[str]) -> Any:
    """Columns of all rows, as a table of Arrow."""
    return table.search().select(columns).limit(table.count_rows()).to_arrow()


def _replace(table: Any, key: str, new: Any, changed: Any) -> None:
    """Replace a column in rows that are named by their keys, after it has got new fields, which are null."""
    import pyarrow as pa
    from lancedb.index import BTree

    version, before = table.version, _all_rows(table, [key])
    # Where the key has an index, LanceDB changes rows in their places; elsewhere it moves them to the end.
    table.create_index(key, config=BTree(), name=_OWN_INDEX)
    try:
        if new.type.num_fields:
            table.add_columns(pa.schema([new]))
        table.merge_insert(key).when_matched_update_all().execute(changed)
    finally:
        table.drop_index(_OWN_INDEX)
    if not _all_rows(table, [key]).equals(before):
        table.restore(version)
        raise OptionError("this version of LanceDB moves changed rows, so nothing was written", table)


def _among(column: str, values: Collection[str]) -> str:
    """The condition that a column has one of these values."""
    quoted = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return f"{column} IN ({quoted})"


def _merged(metadata: Any, added: Sequence[Mapping[str, Any]]) -> Any:
    """A column of structs with more fields, in which the others are as they were."""
    import pyarrow as pa

    old = metadata.combine_chunks()
    fields, columns = list(old.type), old.flatten()
    for name in dict.fromkeys(name for more in added for name in more):
        at = old.type.get_field_index(name)
        before = columns[at].to_pylist() if at >= 0 else [None] * len(added)
        values = [more.get(name, value) for more, value in zip(added, before, strict=True)]
        try:
            column = pa.array(values, columns[at].type if at >= 0 else None)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise OptionError(f"the metadata field {describe(name)} has a different type: {error}", values) from error
        if at >= 0:
            columns[at] = column
        else:
            fields.append(pa.field(name, column.type))
            columns.append(column)
    return pa.StructArray.from_arrays(columns, fields=fields)
