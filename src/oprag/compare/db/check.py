"""What the rows of a results file may hold: others' files are checked before anything is made of them."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, NamedTuple

from oprag.compare.axes import axes

__all__ = ["fault_of"]

_MOST = 10**12  # of anything that is counted; no sum of such numbers overflows
_LARGEST = 1e15  # of a number that is measured
_LONGEST = 16_000_000  # characters of JSON
_DEEPEST = 60  # lists in lists


def fault_of(connection: sqlite3.Connection) -> str | None:
    """What is wrong with the rows of a results file; None if nothing is.

    A bad vector, or an answer that is not made of its replies, counts as missing to those who read it.
    """
    connection.create_function("oprag_fits", 2, _fits, deterministic=True)
    for table, columns in _TABLES.items():
        # Pages that refer to each other in a circle would be read without end.
        (found,) = connection.execute(f"PRAGMA quick_check({table})").fetchone()
        if found != "ok":
            return str(found).splitlines()[-1]
        conditions = {name: kind.condition.format(f'"{name}"') for name, kind in columns.items()}
        row = connection.execute(
            f"SELECT {', '.join(conditions.values())} FROM {table} "
            f"WHERE ({' AND '.join(conditions.values())}) IS NOT TRUE LIMIT 1"
        ).fetchone()
        if row is not None:
            name, kind = next(column for column, good in zip(columns.items(), row, strict=True) if not good)
            return f"a value of {table}.{name} is not {kind.noun}"
    for part in ("cell", "question"):
        query = f"SELECT 1 FROM experiment_{part}s WHERE {part} NOT IN (SELECT id FROM {part}s) LIMIT 1"
        if connection.execute(query).fetchone():
            return f"a {part} of an experiment is missing"
    # Those of a deleted answer may stay: it is made again.
    for table in ("answers", "contexts", "runs"):
        for _, _, parent, _ in connection.execute(f"PRAGMA foreign_key_check({table})"):
            return f"a row of {table} refers to a missing row of {parent}"
    return None


class _Kind(NamedTuple):
    """What a column may hold.

    Attributes:
        condition: An SQL expression that is true for such a value, with {} for the column.
        noun: What it is in words.
    """

    condition: str
    noun: str


def _or_null(kind: _Kind) -> _Kind:
    return _Kind(f"({{0}} IS NULL OR {kind.condition})", f"{kind.noun}, or NULL")


def _whole(low: int, high: int = _MOST) -> _Kind:
    return _Kind(
        f"(typeof({{0}}) = 'integer' AND {{0}} BETWEEN {low} AND {high})", f"a whole number from {low:,} to {high:,}"
    )


def _json(shape: str) -> _Kind:
    # As bytes, since Python takes no text that is not UTF-8.
    fits = f"(length({{0}}) <= {_LONGEST} AND oprag_fits('{shape}', CAST({{0}} AS BLOB)))"
    return _Kind(f"(typeof({{0}}) = 'text' AND {fits})", f"JSON of {shape}")


_WHOLE = _Kind("typeof({0}) = 'integer'", "a whole number")
_TEXT = _Kind("typeof({0}) = 'text'", "text")
_COUNT, _PLACE, _FLAG = _whole(0), _whole(1), _whole(0, 1)
_NUMBER = _Kind(f"{{0}} BETWEEN {-_LARGEST} AND {_LARGEST}", "a finite number")
_AMOUNT = _Kind(f"{{0}} BETWEEN 0 AND {_LARGEST}", "a finite number from 0")
_TEXTS = _json("texts")
# The usual ones are not worth a look.
_NOTES = _Kind(f"({{0}} = '[]' OR {_TEXTS.condition})", _TEXTS.noun)
_COUNTS = _json("counts by name")
_DROPPED = _Kind(f"({{0}} = '{{{{}}}}' OR {_COUNTS.condition})", _COUNTS.noun)

_TABLES: Mapping[str, Mapping[str, _Kind]] = {
    "experiments": {"name": _TEXT, "described": _json("an experiment")},
    "runs": {
        "experiment": _WHOLE,
        "started": _TEXT,
        "ended": _or_null(_TEXT),
        "outcome": _or_null(_TEXT),
        "versions": _json("texts by name"),
    },
    "cells": {
        **dict.fromkeys(("key", "data", "splitter", "search", "store", "order", "method"), _TEXT),
        **dict.fromkeys(("embedder", "model"), _or_null(_TEXT)),
        **dict.fromkeys(("chunk_size", "chunk_overlap", "k", "token_budget"), _or_null(_COUNT)),
        **dict.fromkeys(("similarity_threshold", "redundancy_threshold"), _or_null(_NUMBER)),
        **dict.fromkeys(("seed", "repeat"), _WHOLE),
        "options": _json("options"),
        "identity": _json("named values"),
    },
    "questions": {
        **dict.fromkeys(("key", "data", "name", "question"), _TEXT),
        **dict.fromkeys(("answers", "choices", "documents"), _TEXTS),
        "right_choice": _or_null(_COUNT),
        "evidence": _json("evidence"),
        "about": _json("named values"),
    },
    "experiment_cells": {"experiment": _WHOLE, "cell": _WHOLE},
    "experiment_questions": {"experiment": _WHOLE, "question": _WHOLE},
    "replies": {
        **dict.fromkeys(("key", "model", "step", "text", "digest", "at"), _TEXT),
        **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), _COUNT),
        "estimated": _FLAG,
        "finish_reason": _or_null(_TEXT),
        "seconds": _AMOUNT,
        "money": _or_null(_AMOUNT),
        "run": _WHOLE,
    },
    "failed_calls": {
        **dict.fromkeys(("key", "model", "step", "error", "message", "at"), _TEXT),
        "seconds": _AMOUNT,
        "run": _WHOLE,
    },
    "indexes": {
        **dict.fromkeys(("key", "splitter", "tokenizer"), _TEXT),
        "documents": _TEXTS,
        **dict.fromkeys(("chunk_size", "chunk_overlap", "chunks", "tokens"), _COUNT),
    },
    "chunks": {
        "index": _WHOLE,
        "row": _COUNT,
        "document": _TEXT,
        "page": _or_null(_PLACE),
        "start": _COUNT,
        "end": _Kind(_COUNT.condition + ' AND {0} >= "start"', "an offset from its start on"),
        "tokens": _COUNT,
    },
    "contexts": {"key": _TEXT, "index": _WHOLE, "kept": _json("kept chunks"), "dropped": _DROPPED},
    "retrievals": {
        **dict.fromkeys(("key", "search", "store", "question"), _TEXT),
        "index": _WHOLE,
        "embedder": _or_null(_TEXT),
        "depth": _or_null(_COUNT),
        "hits": _json("found chunks"),
    },
    "answers": {
        **dict.fromkeys(("cell", "question", "run"), _WHOLE),
        **dict.fromkeys(("status", "digest"), _TEXT),
        **dict.fromkeys(("text", "message", "route"), _or_null(_TEXT)),
        "error": _Kind("typeof({0}) = iif(status = 'failed', 'text', 'null')", "the error of a failed answer"),
        "notes": _NOTES,
        **dict.fromkeys(("calls", "input_tokens", "output_tokens", "cached_tokens", "embedded_tokens"), _COUNT),
        **dict.fromkeys(("context_tokens", "context_embedder_tokens", "context_chunks"), _or_null(_COUNT)),
        "estimated": _FLAG,
        "context": _or_null(_WHOLE),
    },
    "calls": {"answer": _WHOLE, "number": _COUNT, "step": _TEXT, "reply": _TEXT},
    "scores": {"answer": _WHOLE, "metric": _TEXT, "value": _NUMBER},
    "measurements": {
        **dict.fromkeys(("cell", "question", "run"), _WHOLE),
        "attempt": _COUNT,
        "phase": _TEXT,
        "seconds": _AMOUNT,
        "cpu_percent": _AMOUNT,
        "peak_memory_bytes": _whole(0, int(_LARGEST)),
        "memory_growth_bytes": _whole(-int(_LARGEST), int(_LARGEST)),
    },
    "failed_measurements": {
        **dict.fromkeys(("run", "cell", "question"), _WHOLE),
        **dict.fromkeys(("error", "message"), _TEXT),
    },
    "embedders": {"number": _WHOLE, "name": _TEXT, "dimension": _PLACE},
    "measured_calls": {**dict.fromkeys(("run", "cell"), _WHOLE), "calls": _COUNT, "tokens": _COUNT, "money": _AMOUNT},
}


def _fits(shape: str, data: bytes) -> bool:
    """Whether data is JSON of a shape."""
    if shape in _ROWS:
        return _ROWS[shape].fullmatch(data) is not None
    try:
        text = data.decode()
        value = json.loads(text)
        if "\\u" in text:  # it may have halves of surrogate pairs, which nothing can write
            json.dumps(value, ensure_ascii=False).encode()
        return _SHAPES[shape](value)
    except (ValueError, RecursionError):
        return False


def _is_shallow(value: Any) -> bool:
    """Whether lists and objects are not nested so deeply that showing them fails."""
    level = [value]
    for _ in range(_DEEPEST):
        groups = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, list | dict)]
        level = [*chain.from_iterable(groups)]
        if not level:
            return True
    return False


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= _LARGEST


def _list_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(fits, value))


def _object_of(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(fits, value.values()))


def _rows_of(*fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def are_rows(value: Any) -> bool:
        if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == len(fits) for row in value):
            return False
        return all(all(map(fit, column)) for fit, column in zip(fits, zip(*value, strict=True), strict=False))

    return are_rows


def _is_plain(value: Any) -> bool:
    """A value on an axis: several keys of metadata are a list."""
    return value is None or isinstance(value, bool | str) or _is_number(value) or _list_of(_is_text)(value)


def _are_options(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_option(*one) for one in value.items())


def _is_option(name: str, value: Any) -> bool:
    """Whether a value is of the type of an axis; axes that are unknown here are not read."""
    default = axes()[name].default if name in axes() else None
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, int | float):
        return _is_number(value)
    return _is_plain(value) and (default is None or isinstance(value, str | list))


def _is_experiment(value: Any) -> bool:
    return _is_named(value) and all(fits(value[name]) for name, fits in _DESCRIBED.items() if name in value)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and _is_shallow(value)


_DESCRIBED: Mapping[str, Callable[[Any], bool]] = {
    "grid": _list_of(_object_of(_list_of(_is_plain))),
    "data": _object_of(_is_count),
    **dict.fromkeys(("models", "embedders", "identities"), _object_of(_is_text)),
    "metrics": _list_of(_is_text),
    "score_embedder": lambda value: value is None or isinstance(value, str),
    "count_tokens": _is_text,
}
_SHAPES: Mapping[str, Callable[[Any], bool]] = {
    "an experiment": _is_experiment,
    "options": _are_options,
    "texts": _list_of(_is_text),
    "texts by name": _object_of(_is_text),
    "counts by name": _object_of(_is_count),
    "named values": _is_named,
    "evidence": _rows_of(_is_text, _is_count, _is_count),
}


def _rows(*columns: bytes) -> re.Pattern[bytes]:
    row = rb"\[" + rb",\s*+".join(columns) + rb"\]"
    return re.compile(rb"\[(?:%s(?:,\s*+%s)*+)?\]" % (row, row))


_DIGITS = rb"(?:0|[1-9][0-9]{0,11}+)"
_SCORE = rb"(?:null|-?(?:0|[1-9][0-9]{0,14}+)(?:\.[0-9]++)?(?:e-[0-9]++)?)"
# These are most of a file, and a pattern takes a sixth of the time of a look at their values.
_ROWS = {"kept chunks": _rows(_DIGITS, _DIGITS, _SCORE), "found chunks": _rows(_DIGITS, _SCORE)}
