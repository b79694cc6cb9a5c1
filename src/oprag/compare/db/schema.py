"""Tables of a results file, designed to be readable in any SQLite tool, and the check of all values on opening."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError
from oprag.files.database import Format

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["CELL_COLUMNS", "RESULTS", "TABLES", "ColumnSchema", "TableSchema"]

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
NUMBER = Kind(f"{{0}} BETWEEN {-_MAX_NUMBER} AND {_MAX_NUMBER}", "a finite number")
AMOUNT = Kind(f"{{0}} BETWEEN 0 AND {_MAX_NUMBER}", "a finite number >= 0")


_AXES: Mapping[str, Kind] = {
    "data": TEXT,
    "splitter": TEXT,
    "chunk_size": or_null(COUNT),
    "chunk_overlap": or_null(COUNT),
    "embedder": or_null(TEXT),
    "search": TEXT,
    "store": TEXT,
    "order": TEXT,
    "seed": ANY_WHOLE,
    "k": or_null(COUNT),
    "token_budget": or_null(COUNT),
    "similarity_threshold": or_null(NUMBER),
    "redundancy_threshold": or_null(NUMBER),
    "method": TEXT,
    "model": or_null(TEXT),
    "repeat": ANY_WHOLE,
}
CELL_COLUMNS = tuple(_AXES)
"""Axes with their own column; values of other axes are in `options`, unless they are the default."""


class ColumnSchema(NamedTuple):
    """A column of a table."""

    ddl: str
    own_kind: Kind | None = None  # kind of its values, if the type does not imply it
    masked: bool = False  # whether it may contain a provider's message, so secrets are masked

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.ddl.split()[0].strip('"')

    @property
    def kind(self) -> Kind:
        """Kind of its values."""
        if self.own_kind is not None:
            return self.own_kind
        whole = COUNT if "REFERENCES" not in self.ddl else ANY_WHOLE
        kind = {"TEXT": TEXT, "REAL": AMOUNT, "INTEGER": whole}[self.ddl.split()[1]]
        return kind if "NOT NULL" in self.ddl else or_null(kind)


class TableSchema(NamedTuple):
    """A table: its columns, the constraints after them, and the options after both."""

    columns: Sequence[ColumnSchema]
    constraints: Sequence[str] = ()
    options: str = ""

    def ddl(self, name: str) -> str:
        """SQL statement that creates the table."""
        parts = ", ".join([*(column.ddl for column in self.columns), *self.constraints])
        return f"CREATE TABLE {name} ({parts}) {self.options}".rstrip()


def _table(*columns: ColumnSchema | str, constraints: Sequence[str] = (), options: str = "") -> TableSchema:
    return TableSchema([ColumnSchema(one) if isinstance(one, str) else one for one in columns], constraints, options)


_ID = "id INTEGER PRIMARY KEY"
_RUN = "run INTEGER NOT NULL REFERENCES runs"
_CELL = "cell INTEGER NOT NULL REFERENCES cells"
_QUESTION = "question INTEGER NOT NULL REFERENCES questions"
_INDEX = '"index" INTEGER NOT NULL REFERENCES indexes'
_KEY = "key TEXT NOT NULL UNIQUE"
_USAGE = (
    "input_tokens INTEGER NOT NULL",
    "output_tokens INTEGER NOT NULL",
    "cached_tokens INTEGER NOT NULL",
    ColumnSchema("estimated INTEGER NOT NULL", FLAG),
)

TABLES: Mapping[str, TableSchema] = {
    "experiments": _table(
        _ID,
        "name TEXT NOT NULL UNIQUE",
        ColumnSchema("described TEXT NOT NULL", json_of("an experiment")),
    ),
    "runs": _table(
        _ID,
        "experiment INTEGER NOT NULL REFERENCES experiments",
        "started TEXT NOT NULL",
        "ended TEXT",
        ColumnSchema("outcome TEXT", masked=True),
        ColumnSchema("versions TEXT NOT NULL", json_of("texts by name")),
    ),
    "cells": _table(
        _ID,
        _KEY,
        *(ColumnSchema(f'"{name}"', kind) for name, kind in _AXES.items()),
        ColumnSchema("options TEXT NOT NULL", json_of("options")),
        ColumnSchema("identity TEXT NOT NULL", json_of("named values")),
    ),
    "questions": _table(
        _ID,
        _KEY,
        "data TEXT NOT NULL",
        "name TEXT NOT NULL",
        "question TEXT NOT NULL",
        ColumnSchema("answers TEXT NOT NULL", json_of("texts")),
        ColumnSchema("choices TEXT NOT NULL", json_of("texts")),
        "right_choice INTEGER",
        ColumnSchema("evidence TEXT NOT NULL", json_of("evidence")),
        ColumnSchema("documents TEXT NOT NULL", json_of("texts")),
        ColumnSchema("about TEXT NOT NULL", json_of("named values")),
    ),
    "experiment_cells": _table(
        ColumnSchema("experiment INTEGER NOT NULL", ANY_WHOLE),
        ColumnSchema("cell INTEGER NOT NULL", ANY_WHOLE),
        constraints=["PRIMARY KEY (experiment, cell)"],
        options="WITHOUT ROWID",
    ),
    "experiment_questions": _table(
        ColumnSchema("experiment INTEGER NOT NULL", ANY_WHOLE),
        ColumnSchema("question INTEGER NOT NULL", ANY_WHOLE),
        constraints=["PRIMARY KEY (experiment, question)"],
        options="WITHOUT ROWID",
    ),
    "replies": _table(
        "key TEXT NOT NULL PRIMARY KEY",
        "model TEXT NOT NULL",
        "step TEXT NOT NULL",
        "text TEXT NOT NULL",
        *_USAGE,
        "finish_reason TEXT",
        "seconds REAL NOT NULL",
        "digest TEXT NOT NULL",
        _RUN,
        "money REAL",
        "at TEXT NOT NULL",
        options="WITHOUT ROWID",
    ),
    "failed_calls": _table(
        _ID,
        "key TEXT NOT NULL",
        "model TEXT NOT NULL",
        "step TEXT NOT NULL",
        "error TEXT NOT NULL",
        ColumnSchema("message TEXT NOT NULL", masked=True),
        "seconds REAL NOT NULL",
        _RUN,
        "at TEXT NOT NULL",
    ),
    "answers": _table(
        _ID,
        _CELL,
        _QUESTION,
        "status TEXT NOT NULL CHECK (status IN ('answered', 'failed'))",
        "text TEXT",
        ColumnSchema(
            "error TEXT",
            Kind("typeof({0}) = iif(status = 'failed', 'text', 'null')", "the error of a failed answer"),
        ),
        ColumnSchema("message TEXT", masked=True),
        ColumnSchema("notes TEXT NOT NULL", json_of("texts", usual="[]"), masked=True),
        "route TEXT",
        "calls INTEGER NOT NULL",
        *_USAGE,
        "embedded_tokens INTEGER NOT NULL",
        "context_tokens INTEGER",
        "context_embedder_tokens INTEGER",
        "context_chunks INTEGER",
        "seconds REAL",
        "cpu_seconds REAL",
        "peak_memory_mib REAL",
        "context INTEGER REFERENCES contexts",
        "digest TEXT NOT NULL",
        _RUN,
        constraints=["UNIQUE (cell, question)"],
    ),
    "calls": _table(
        "answer INTEGER NOT NULL REFERENCES answers",
        "number INTEGER NOT NULL",
        "step TEXT NOT NULL",
        "reply TEXT NOT NULL",
        constraints=["PRIMARY KEY (answer, number)"],
        options="WITHOUT ROWID",
    ),
    "scores": _table(
        "answer INTEGER NOT NULL REFERENCES answers",
        "metric TEXT NOT NULL",
        ColumnSchema("value REAL NOT NULL", NUMBER),
        constraints=["PRIMARY KEY (answer, metric)"],
        options="WITHOUT ROWID",
    ),
    "contexts": _table(
        _ID,
        _KEY,
        _INDEX,
        ColumnSchema("kept TEXT NOT NULL", json_of("kept chunks")),
        # Most contexts dropped nothing. Braces are doubled for `format`.
        ColumnSchema("dropped TEXT NOT NULL", json_of("counts by name", usual="{{}}")),
    ),
    "indexes": _table(
        _ID,
        _KEY,
        ColumnSchema("documents TEXT NOT NULL", json_of("texts")),
        "splitter TEXT NOT NULL",
        "chunk_size INTEGER NOT NULL",
        "chunk_overlap INTEGER NOT NULL",
        "tokenizer TEXT NOT NULL",
        "chunks INTEGER NOT NULL",
        "tokens INTEGER NOT NULL",
    ),
    "chunks": _table(
        _INDEX,
        "row INTEGER NOT NULL",
        "document TEXT NOT NULL",
        ColumnSchema("page INTEGER", or_null(PLACE)),
        "start INTEGER NOT NULL",
        ColumnSchema(
            '"end" INTEGER NOT NULL',
            Kind(f'{COUNT.condition} AND {{0}} >= "start"', "an offset not before the start"),
        ),
        "tokens INTEGER NOT NULL",
        constraints=['PRIMARY KEY ("index", row)'],
        options="WITHOUT ROWID",
    ),
    "retrievals": _table(
        "key TEXT NOT NULL PRIMARY KEY",
        _INDEX,
        "embedder TEXT",
        "search TEXT NOT NULL",
        "store TEXT NOT NULL",
        "question TEXT NOT NULL",
        "depth INTEGER",
        ColumnSchema("hits TEXT NOT NULL", json_of("found chunks")),
        options="WITHOUT ROWID",
    ),
}
"""All tables except those of vectors, which vector caches have as well."""

_VIEW = f"""
CREATE VIEW results AS SELECT experiments.name AS experiment, {", ".join(f'cells."{name}"' for name in CELL_COLUMNS)},
    cells.options, questions.name AS question_id, questions.question, answers.status, answers.text AS answer,
    answers.error, answers.message, answers.notes, answers.route, answers.calls, answers.input_tokens,
    answers.output_tokens, answers.cached_tokens, answers.estimated, answers.embedded_tokens, answers.context_tokens,
    answers.context_embedder_tokens, answers.context_chunks, answers.seconds, answers.cpu_seconds,
    answers.peak_memory_mib,
    (SELECT json_group_object(metric, value) FROM scores WHERE scores.answer = answers.id) AS scores
    FROM answers JOIN cells ON cells.id = answers.cell JOIN questions ON questions.id = answers.question
    JOIN experiment_cells ON experiment_cells.cell = cells.id
    JOIN experiment_questions ON experiment_questions.question = questions.id
        AND experiment_questions.experiment = experiment_cells.experiment
    JOIN experiments ON experiments.id = experiment_cells.experiment
"""


def _fault_of(connection: sqlite3.Connection) -> str | None:
    """Describe the first invalid row of a results file; None if all rows are valid.

    Corrupt vectors, and answers that do not match their replies, are not reported: readers treat them as missing.
    """
    connection.create_function("oprag_fits", 2, _fits, deterministic=True)
    kinds = {name: {column.name: column.kind for column in table.columns} for name, table in TABLES.items()}
    kinds["embedders"] = {"number": ANY_WHOLE, "name": TEXT, "dimension": PLACE}
    for table, columns in kinds.items():
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


RESULTS = Format(
    "results file",
    0x6F705265,  # "opRe"
    1,
    ";\n".join(
        [
            *(table.ddl(name) for name, table in TABLES.items()),
            "CREATE INDEX replies_by_run ON replies (run)",
            VECTOR_SCHEMA.strip().rstrip(";"),
            _VIEW,
        ]
    ),
    ResultsFileError,
    "keep a copy and start a new file; `sqlite3 FILE .recover` saves the readable rows",
    _fault_of,
)
"""Format of a results file."""
