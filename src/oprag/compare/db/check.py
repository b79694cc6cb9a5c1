"""Kinds of column values in a results file, all of which are checked when a file is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "AMOUNT",
    "ANY_WHOLE",
    "BYTES",
    "COUNT",
    "FLAG",
    "GROWTH",
    "NUMBER",
    "PLACE",
    "TEXT",
    "Kind",
    "fault_of",
    "json_of",
    "or_null",
]

_MAX_COUNT = 10**12  # maximum count; sums of counts cannot overflow
_MAX_NUMBER = 1e15  # maximum absolute value of measured numbers
_MAX_JSON_LENGTH = 16_000_000  # maximum characters of JSON


class Kind(NamedTuple):
    """A kind of value: an SQL condition with {0} for the column, and a name for messages."""

    condition: str
    noun: str


def or_null(kind: Kind) -> Kind:
    """Allow NULL in addition to this kind."""
    return Kind(f"({{0}} IS NULL OR {kind.condition})", f"{kind.noun}, or NULL")


def _whole(low: int, high: int = _MAX_COUNT) -> Kind:
    """Whole numbers in a range."""
    return Kind(
        f"(typeof({{0}}) = 'integer' AND {{0}} BETWEEN {low} AND {high})", f"an integer from {low:,} to {high:,}"
    )


def json_of(shape: str, usual: str = "") -> Kind:
    """JSON of one of the shapes in `_shapes`; the text `usual` is accepted without parsing."""
    # Passed as bytes, since sqlite3 cannot pass text that is not UTF-8.
    fits = f"(length({{0}}) <= {_MAX_JSON_LENGTH} AND oprag_fits('{shape}', CAST({{0}} AS BLOB)))"
    condition = f"(typeof({{0}}) = 'text' AND {fits})"
    return Kind(f"({{0}} = '{usual}' OR {condition})" if usual else condition, f"JSON of {shape}")


ANY_WHOLE = Kind("typeof({0}) = 'integer'", "an integer")
TEXT = Kind("typeof({0}) = 'text'", "text")
COUNT, PLACE, FLAG = _whole(0), _whole(1), _whole(0, 1)
BYTES, GROWTH = _whole(0, int(_MAX_NUMBER)), _whole(-int(_MAX_NUMBER), int(_MAX_NUMBER))
NUMBER = Kind(f"{{0}} BETWEEN {-_MAX_NUMBER} AND {_MAX_NUMBER}", "a finite number")
AMOUNT = Kind(f"{{0}} BETWEEN 0 AND {_MAX_NUMBER}", "a finite number >= 0")


def fault_of(connection: sqlite3.Connection, tables: Mapping[str, Mapping[str, Kind]]) -> str | None:
    """Describe the first invalid row of a results file; None if all rows are valid.

    Corrupt vectors, and answers that do not match their replies, are not reported: readers treat them as missing.
    """
    connection.create_function("oprag_fits", 2, _fits, deterministic=True)
    for table, columns in tables.items():
        # Reading database pages that reference each other in a cycle would never end.
        (found,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if found != "ok":
            return str(found).splitlines()[-1]
        conditions = [kind.condition.format(f'"{name}"') for name, kind in columns.items()]
        row = connection.execute(
            f"SELECT {', '.join(conditions)} FROM {table} WHERE ({' AND '.join(conditions)}) IS NOT TRUE LIMIT 1"
        ).fetchone()
        if row is not None:
            name, kind = next(column for column, good in zip(columns.items(), row, strict=True) if not good)
            return f"a value of {table}.{name} is not {kind.noun}"
    for part in ("cell", "question"):
        query = f"SELECT 1 FROM experiment_{part}s WHERE {part} NOT IN (SELECT id FROM {part}s) LIMIT 1"
        if connection.execute(query).fetchone():
            return f"a {part} of an experiment is missing"
    # Calls and scores of a deleted answer may remain; the answer is created again.
    for table in ("answers", "contexts", "runs"):
        for _, _, parent, _ in connection.execute(f"PRAGMA foreign_key_check({table})"):
            return f"a row of {table} refers to a missing row of {parent}"
    return None


def _fits(shape: str, data: bytes) -> bool:
    try:
        _shapes()[shape].validate_json(data)
    except ValueError:
        return False
    return True


@cache
def _shapes() -> Mapping[str, TypeAdapter[Any]]:
    """JSON validators; the parser rejects unpaired surrogates and lists nested more than 200 levels deep."""
    # Imported here because importing pydantic takes longer than opening a new file.
    from pydantic import ConfigDict, Field, FiniteFloat, TypeAdapter, create_model

    strict = ConfigDict(strict=True)
    count: Any = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
    number: Any = Annotated[FiniteFloat, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
    # Options with several metadata keys are lists.
    plain: Any = bool | str | number | list[str] | None
    described = create_model(
        "Described",
        __config__=ConfigDict(strict=True, extra="allow"),
        grid=(list[dict[str, list[plain]]], []),
        data=(dict[str, count], {}),
        models=(dict[str, str], {}),
        embedders=(dict[str, str], {}),
        identities=(dict[str, str], {}),
        metrics=(list[str], []),
        score_embedder=(str | None, None),
        count_tokens=(str, ""),
    )
    types: Mapping[str, Any] = {
        "texts": list[str],
        "texts by name": dict[str, str],
        "counts by name": dict[str, count],
        "named values": dict[str, Any],
        "evidence": list[tuple[str, count, count]],
        "kept chunks": list[tuple[count, count, number | None]],
        "found chunks": list[tuple[count, number | None]],
        "options": dict[str, plain],
    }
    return {name: TypeAdapter(one, config=strict) for name, one in types.items()} | {
        "an experiment": TypeAdapter(described)
    }
