"""LanceDB: LangChain's `LanceDB`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from oprag.chunk import counted
from oprag.errors import OptionError
from oprag.masking import describe, error_text
from oprag.positions.sources import numbers_named
from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector

if TYPE_CHECKING:
    from oprag.chunk import Chunk

__all__ = ["LangChainLanceDB"]

# Index types without settings, which can be rebuilt without loss.
_REBUILT = {"BTree", "Bitmap", "LabelList"}
# Texts of LanceDB's errors about concurrent changes, which have no error class of their own.
_CONFLICTS = ("commit conflict", "incompatible transaction", "write contention", "concurrent")
_ATTEMPTS = 5  # of a step that a concurrent change stopped


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
        rows = self._rows([_among(text, keys)], [text, vector])
        return {row[text]: StoredVector(row[vector], row[text]) for row in rows}

    def in_sequence(self, keys: Collection[str]) -> Sequence[str]:
        """Sort texts by the order of the table."""
        text = self.store._text_key  # noqa: SLF001
        return [row[text] for row in self._rows([_among(text, keys), self._filter], [text])]

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk] | None:
        """List the chunks in the order of the table, which deletions preserve."""
        if "`" in field or not isinstance(self.search.get("filter"), str | dict | None):
            return None
        if field and not sources:
            return ()
        about = self._about
        if about is None:
            return None
        named = ""
        if field:
            values = _values(about.field(field).type, sources) if about.get_field_index(field) >= 0 else []
            if not values:
                return []
            named = _among(f"metadata.`{field}`", values)
        text, key = self.store._text_key, self.store._id_key  # noqa: SLF001
        rows = self._rows([named, self._filter], [text, "metadata", key])
        return (StoredChunk(row[text], row[text], row["metadata"] or {}, str(row[key])) for row in rows)

    @property
    def total(self) -> int | None:
        """Number of chunks; None if the search has a filter."""
        return None if self._about is None or self._filter else int(self._table.count_rows())

    def write(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Change the metadata of all rows in one version of the table, without moving rows.

        Rows that another program adds, changes or deletes at the same time are left as that program wrote them.
        """
        table, about, key = self._table, self._about, self.store._id_key  # noqa: SLF001
        if about is None:
            super().write(added)
        from lancedb import index as kinds

        rows = _read(table, [key, "metadata"])
        ids = [str(one) for one in rows[key].to_pylist()]
        self.refuse_unknown(added, set(ids))
        to_change = [one for one in ids if one in added]
        if len(to_change) > len(added):
            raise OptionError(
                f"{self.name} has several rows with the same id, so nothing was written; give each row a unique id",
                to_change,
            )
        indexes = [index for index in table.list_indices() if index.columns[0].split(".")[0] in (key, "metadata")]
        for index in indexes:
            if index.index_type not in _REBUILT:
                message = (
                    f"writing metadata would invalidate the index {describe(index.name)}; drop it, and create it "
                    "again afterwards"
                )
                raise OptionError(message, index.name)
        fields = list(_merged(rows, key, added)["metadata"].type)[::-1]
        if not _stay_in_place():
            raise OptionError(
                "this version of LanceDB would move changed rows, so nothing was written; use read_source= instead",
                table,
            )
        _with_retries(lambda: self._add_fields(fields))
        _with_retries(lambda: self._change(added))
        # Rebuild indexes: they drop changed rows, and an index without rows breaks `optimize`.
        for index in indexes:
            config = getattr(kinds, index.index_type)()
            _with_retries(partial(self._make_index, index.columns[0], config=config, name=index.name))

    def _make_index(self, column: str, **options: Any) -> None:
        self._table.create_index(column, **options)

    def _add_fields(self, fields: Sequence[Any]) -> None:
        """Add fields that the metadata do not have yet, with nulls in all rows."""
        import pyarrow as pa

        about = self._about
        new = [one for one in fields if about.get_field_index(one.name) < 0]
        if new:
            self._table.add_columns(pa.schema([pa.field("metadata", pa.struct(new))]))

    def _change(self, added: Mapping[str, Mapping[str, Any]]) -> None:
        """Write the metadata of all rows, and restore rows that another program wrote at the same time."""
        key, text = self.store._id_key, self.store._text_key  # noqa: SLF001
        table = self._table
        before = table.version
        rows = _merged(_read(table, [key, "metadata"]), key, added)
        after = _replace(table, key, rows)
        if after == before + 1:
            return
        # Another program wrote in between, and LanceDB overwrote the rows that it changed.
        columns = [key, text, "metadata"]
        old = {row[key]: _content(row) for row in _read(self._at(before), columns).to_pylist()}
        theirs = _read(self._at(after - 1), columns).to_pylist()
        changed = {row[key] for row in theirs if row[key] in old and _content(row) != old[row[key]]}
        if changed:
            self._put_back(changed, after)
            raise OptionError(
                f"another program changed {counted(len(changed), 'row')} of {self.name} at the same time; its changes "
                "were kept; write again",
                sorted(map(str, changed)),
            )

    def _put_back(self, keys: Collection[Any], version: int) -> None:
        """Restore the metadata before a version of ours, except in rows that were changed again since."""
        import pyarrow as pa

        key = self.store._id_key  # noqa: SLF001
        table = self._table
        theirs, ours, now = (_read(one, [key, "metadata"]) for one in (self._at(version - 1), self._at(version), table))
        same = {row[key]: _content(row) for row in ours.to_pylist()}
        present = {row[key] for row in now.to_pylist() if _content(row) == same.get(row[key])}
        chosen = [one in keys and one in present for one in theirs[key].to_pylist()]
        _replace(table, key, _merged(theirs.filter(pa.array(chosen)), key, {}))

    def _at(self, version: int) -> Any:
        """Return the table at a version."""
        # This is a new handle; other handles stay at the newest version.
        table = self._table
        table.checkout(version)
        return table

    @property
    def _table(self) -> Any:
        return self.store.get_table(self.search.get("name"))

    @property
    def _about(self) -> Any:
        """The Arrow struct type of the metadata; None if the table does not have LangChain's layout."""
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
        return given if isinstance(given, str) else ""

    def _rows(self, conditions: Sequence[str], columns: list[str]) -> list[dict[str, Any]]:
        """Read columns of the rows that match all conditions; empty conditions are ignored."""
        table, where = self._table, " AND ".join(f"({one})" for one in conditions if one)
        try:
            rows = _read(table, columns, where)
        except ValueError:
            if not where:
                raise
            # LanceDB 0.40 cannot filter a table whose rows differ in metadata keys; filter a copy instead.
            import lancedb

            whole = _read(table, [*dict.fromkeys([*columns, self.store._text_key, "metadata"])])  # noqa: SLF001
            rows = _read(lancedb.connect("memory://").create_table("copy", whole), columns, where)
        listed: list[dict[str, Any]] = rows.to_pylist()
        return listed


def _read(table: Any, columns: list[str], where: str = "") -> Any:
    """Read columns of the rows that match a condition (all rows if it is empty) as an Arrow table."""
    query = table.search().select(columns).limit(table.count_rows())
    return (query.where(where) if where else query).to_arrow()


def _with_retries(step: Callable[[], None]) -> None:
    """Run a step, and retry it if another program changed the table at the same time."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            step()
        except OptionError:
            raise
        except Exception as error:
            if not any(word in error_text(error).lower() for word in _CONFLICTS):
                raise
            if not left:
                # LanceDB's message is omitted: it contains file paths of its build machine.
                raise OptionError(
                    f"other programs kept changing the LanceDB table during {_ATTEMPTS} attempts; write again when "
                    "they are done",
                    step,
                ) from error
        else:
            return


def _replace(table: Any, key: str, rows: Any) -> int:
    """Replace the metadata of rows by key, and return the resulting version of the table."""
    if not rows.num_rows:
        return int(table.version)
    merge = table.merge_insert(key).when_matched_update_all().use_index(False)  # noqa: FBT003 - LanceDB's own
    return int(merge.execute(rows).version)


@cache
def _stay_in_place() -> bool:
    """Return whether this version of LanceDB updates rows in place, tested on a small table."""
    import lancedb
    import pyarrow as pa

    keys = ["1", "2", "3"]
    kind = pa.struct([pa.field("a", pa.string()), pa.field("b", pa.string())])
    rows = pa.table({"id": keys, "text": keys, "metadata": pa.array([{"a": one, "b": one} for one in keys], kind)})
    table = lancedb.connect("memory://").create_table("rows", rows)
    _replace(table, "id", _merged(rows.select(["id", "metadata"]).slice(0, 2), "id", {"1": {"b": "changed"}}))
    return bool(_read(table, ["id"])["id"].to_pylist() == keys)


def _content(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row, without null metadata."""
    metadata = {name: value for name, value in (row["metadata"] or {}).items() if value is not None}
    return {**row, "metadata": metadata}


def _values(kind: Any, sources: Collection[str]) -> list[str | int | float]:
    """Convert source names to values of an Arrow type."""
    import pyarrow as pa

    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [*sources]
    numbers = numbers_named(sources) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else []
    return [one for one in numbers if isinstance(one, int) or pa.types.is_floating(kind)]


def _among(column: str, values: Collection[str | int | float]) -> str:
    """Return the SQL condition that a column has one of these values."""
    written = ("'" + one.replace("'", "''") + "'" if isinstance(one, str) else repr(one) for one in values)
    return f"{column} IN ({', '.join(written)})"


def _merged(rows: Any, key: str, added: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the rows with unique keys, with the added metadata merged in.

    All metadata fields are included, because LanceDB cannot filter rows whose fields are spread over several files. The
    fields are in reverse order, because with the table's order and no index on the keys LanceDB moves changed rows to
    the end.
    """
    import pyarrow as pa

    times = Counter(rows[key].to_pylist())
    rows = rows.filter(pa.array([one is not None and times[one] == 1 for one in rows[key].to_pylist()], pa.bool_()))
    more = [added.get(str(one), {}) for one in rows[key].to_pylist()]
    old = rows["metadata"].combine_chunks()
    fields, columns = list(old.type), old.flatten()
    for name in dict.fromkeys(name for one in added.values() for name in one):
        at = old.type.get_field_index(name)
        before = columns[at].to_pylist() if at >= 0 else [None] * len(more)
        values = [one.get(name, value) for one, value in zip(more, before, strict=True)]
        try:
            column = pa.array(values, columns[at].type if at >= 0 else None)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise OptionError(f"the metadata field {describe(name)} has a different type: {error}", values) from error
        if at >= 0:
            columns[at] = column
        else:
            fields.append(pa.field(name, column.type))
            columns.append(column)
    metadata = pa.StructArray.from_arrays(columns[::-1], fields=fields[::-1])
    return pa.table({key: rows[key], "metadata": metadata})
