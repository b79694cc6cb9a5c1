"""The tables of a results file. They are made for people too: any tool that reads SQLite shows everything."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from oprag.compare.db.check import (
    AMOUNT,
    ANY_WHOLE,
    BYTES,
    COUNT,
    FLAG,
    GROWTH,
    NUMBER,
    PLACE,
    TEXT,
    Kind,
    fault_of,
    json_of,
    or_null,
)
from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError
from oprag.files.database import Format

__all__ = ["CELL_COLUMNS", "RESULTS", "TABLES", "Column", "Table"]

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
"""The axes that have their own column; the others are in `options`, unless they have their default."""


class Column(NamedTuple):
    """A column of a table."""

    ddl: str
    kind: Kind | None = None  # None if SQLite itself checks the values
    masked: bool = False  # whether it may repeat a provider's message, in which secrets are masked

    @property
    def name(self) -> str:
        """Its name."""
        return self.ddl.split()[0].strip('"')


class Table(NamedTuple):
    """A table: its columns, the constraints that follow them, and the options that follow both."""

    columns: Sequence[Column]
    constraints: Sequence[str] = ()
    options: str = ""

    def ddl(self, name: str) -> str:
        """The statement that creates it."""
        parts = ", ".join([*(column.ddl for column in self.columns), *self.constraints])
        return f"CREATE TABLE {name} ({parts}) {self.options}".rstrip()


_ID = Column("id INTEGER PRIMARY KEY")
_RUN = Column("run INTEGER NOT NULL REFERENCES runs", ANY_WHOLE)
_CELL = Column("cell INTEGER NOT NULL REFERENCES cells", ANY_WHOLE)
_QUESTION = Column("question INTEGER NOT NULL REFERENCES questions", ANY_WHOLE)
_INDEX = Column('"index" INTEGER NOT NULL REFERENCES indexes', ANY_WHOLE)
_KEY = Column("key TEXT NOT NULL UNIQUE", TEXT)
_USAGE = (
    Column("input_tokens INTEGER NOT NULL", COUNT),
    Column("output_tokens INTEGER NOT NULL", COUNT),
    Column("cached_tokens INTEGER NOT NULL", COUNT),
    Column("estimated INTEGER NOT NULL", FLAG),
)

TABLES: Mapping[str, Table] = {
    "experiments": Table(
        [
            _ID,
            Column("name TEXT NOT NULL UNIQUE", TEXT),
            Column("described TEXT NOT NULL", json_of("an experiment")),
        ]
    ),
    "runs": Table(
        [
            _ID,
            Column("experiment INTEGER NOT NULL REFERENCES experiments", ANY_WHOLE),
            Column("started TEXT NOT NULL", TEXT),
            Column("ended TEXT", or_null(TEXT)),
            Column("outcome TEXT", or_null(TEXT), masked=True),
            Column("versions TEXT NOT NULL", json_of("texts by name")),
        ]
    ),
    "cells": Table(
        [
            _ID,
            _KEY,
            *(Column(f'"{name}"', kind) for name, kind in _AXES.items()),
            Column("options TEXT NOT NULL", json_of("options")),
            Column("identity TEXT NOT NULL", json_of("named values")),
        ]
    ),
    "questions": Table(
        [
            _ID,
            _KEY,
            Column("data TEXT NOT NULL", TEXT),
            Column("name TEXT NOT NULL", TEXT),
            Column("question TEXT NOT NULL", TEXT),
            Column("answers TEXT NOT NULL", json_of("texts")),
            Column("choices TEXT NOT NULL", json_of("texts")),
            Column("right_choice INTEGER", or_null(COUNT)),
            Column("evidence TEXT NOT NULL", json_of("evidence")),
            Column("documents TEXT NOT NULL", json_of("texts")),
            Column("about TEXT NOT NULL", json_of("named values")),
        ]
    ),
    "experiment_cells": Table(
        [Column("experiment INTEGER NOT NULL", ANY_WHOLE), Column("cell INTEGER NOT NULL", ANY_WHOLE)],
        ["PRIMARY KEY (experiment, cell)"],
        "WITHOUT ROWID",
    ),
    "experiment_questions": Table(
        [Column("experiment INTEGER NOT NULL", ANY_WHOLE), Column("question INTEGER NOT NULL", ANY_WHOLE)],
        ["PRIMARY KEY (experiment, question)"],
        "WITHOUT ROWID",
    ),
    "replies": Table(
        [
            Column("key TEXT NOT NULL PRIMARY KEY", TEXT),
            Column("model TEXT NOT NULL", TEXT),
            Column("step TEXT NOT NULL", TEXT),
            Column("text TEXT NOT NULL", TEXT),
            *_USAGE,
            Column("finish_reason TEXT", or_null(TEXT)),
            Column("seconds REAL NOT NULL", AMOUNT),
            Column("digest TEXT NOT NULL", TEXT),
            _RUN,
            Column("money REAL", or_null(AMOUNT)),
            Column("at TEXT NOT NULL", TEXT),
        ],
        options="WITHOUT ROWID",
    ),
    "failed_calls": Table(
        [
            _ID,
            Column("key TEXT NOT NULL", TEXT),
            Column("model TEXT NOT NULL", TEXT),
            Column("step TEXT NOT NULL", TEXT),
            Column("error TEXT NOT NULL", TEXT),
            Column("message TEXT NOT NULL", TEXT, masked=True),
            Column("seconds REAL NOT NULL", AMOUNT),
            _RUN,
            Column("at TEXT NOT NULL", TEXT),
        ]
    ),
    "answers": Table(
        [
            _ID,
            _CELL,
            _QUESTION,
            Column("status TEXT NOT NULL CHECK (status IN ('answered', 'failed'))", TEXT),
            Column("text TEXT", or_null(TEXT)),
            Column(
                "error TEXT",
                Kind("typeof({0}) = iif(status = 'failed', 'text', 'null')", "the error of a failed answer"),
            ),
            Column("message TEXT", or_null(TEXT), masked=True),
            Column("notes TEXT NOT NULL", json_of("texts", usual="[]"), masked=True),
            Column("route TEXT", or_null(TEXT)),
            Column("calls INTEGER NOT NULL", COUNT),
            *_USAGE,
            Column("embedded_tokens INTEGER NOT NULL", COUNT),
            Column("context_tokens INTEGER", or_null(COUNT)),
            Column("context_embedder_tokens INTEGER", or_null(COUNT)),
            Column("context_chunks INTEGER", or_null(COUNT)),
            Column("context INTEGER REFERENCES contexts", or_null(ANY_WHOLE)),
            Column("digest TEXT NOT NULL", TEXT),
            _RUN,
        ],
        ["UNIQUE (cell, question)"],
    ),
    "calls": Table(
        [
            Column("answer INTEGER NOT NULL REFERENCES answers", ANY_WHOLE),
            Column("number INTEGER NOT NULL", COUNT),
            Column("step TEXT NOT NULL", TEXT),
            Column("reply TEXT NOT NULL", TEXT),
        ],
        ["PRIMARY KEY (answer, number)"],
        "WITHOUT ROWID",
    ),
    "scores": Table(
        [
            Column("answer INTEGER NOT NULL REFERENCES answers", ANY_WHOLE),
            Column("metric TEXT NOT NULL", TEXT),
            Column("value REAL NOT NULL", NUMBER),
        ],
        ["PRIMARY KEY (answer, metric)"],
        "WITHOUT ROWID",
    ),
    "contexts": Table(
        [
            _ID,
            _KEY,
            _INDEX,
            Column("kept TEXT NOT NULL", json_of("kept chunks")),
            # Most have nothing dropped. Braces are doubled for `format`.
            Column("dropped TEXT NOT NULL", json_of("counts by name", usual="{{}}")),
        ]
    ),
    "indexes": Table(
        [
            _ID,
            _KEY,
            Column("documents TEXT NOT NULL", json_of("texts")),
            Column("splitter TEXT NOT NULL", TEXT),
            Column("chunk_size INTEGER NOT NULL", COUNT),
            Column("chunk_overlap INTEGER NOT NULL", COUNT),
            Column("tokenizer TEXT NOT NULL", TEXT),
            Column("chunks INTEGER NOT NULL", COUNT),
            Column("tokens INTEGER NOT NULL", COUNT),
        ]
    ),
    "chunks": Table(
        [
            _INDEX,
            Column("row INTEGER NOT NULL", COUNT),
            Column("document TEXT NOT NULL", TEXT),
            Column("page INTEGER", or_null(PLACE)),
            Column("start INTEGER NOT NULL", COUNT),
            Column(
                '"end" INTEGER NOT NULL',
                Kind(f'{COUNT.condition} AND {{0}} >= "start"', "an offset from its start on"),
            ),
            Column("tokens INTEGER NOT NULL", COUNT),
        ],
        ['PRIMARY KEY ("index", row)'],
        "WITHOUT ROWID",
    ),
    "retrievals": Table(
        [
            Column("key TEXT NOT NULL PRIMARY KEY", TEXT),
            _INDEX,
            Column("embedder TEXT", or_null(TEXT)),
            Column("search TEXT NOT NULL", TEXT),
            Column("store TEXT NOT NULL", TEXT),
            Column("question TEXT NOT NULL", TEXT),
            Column("depth INTEGER", or_null(COUNT)),
            Column("hits TEXT NOT NULL", json_of("found chunks")),
        ],
        options="WITHOUT ROWID",
    ),
    "measurements": Table(
        [
            _ID,
            _CELL,
            _QUESTION,
            Column("attempt INTEGER NOT NULL", COUNT),
            Column("phase TEXT NOT NULL CHECK (phase IN ('indexing', 'retrieval', 'generation'))", TEXT),
            Column("seconds REAL NOT NULL", AMOUNT),
            Column("cpu_percent REAL NOT NULL", AMOUNT),
            Column("peak_memory_bytes INTEGER NOT NULL", BYTES),
            Column("memory_growth_bytes INTEGER NOT NULL", GROWTH),
            _RUN,
        ],
        ["UNIQUE (cell, question, attempt, phase)"],
    ),
    "failed_measurements": Table(
        [
            _ID,
            _RUN,
            _CELL,
            _QUESTION,
            Column("error TEXT NOT NULL", TEXT),
            Column("message TEXT NOT NULL", TEXT, masked=True),
        ]
    ),
    "measured_calls": Table(
        [
            _RUN,
            _CELL,
            Column("calls INTEGER NOT NULL", COUNT),
            Column("tokens INTEGER NOT NULL", COUNT),
            Column("money REAL NOT NULL", AMOUNT),
        ]
    ),
}
"""Every table but those of vectors, which a vector cache has as well."""

_MEASURED = ", ".join(
    f"(SELECT avg({column}) FROM measurements WHERE measurements.cell = answers.cell "
    f"AND measurements.question = answers.question AND phase = '{phase}') AS {phase}_{column}"
    for phase in ("retrieval", "generation")
    for column in ("seconds", "cpu_percent", "peak_memory_bytes")
)
"""Empty where nothing was measured."""

_VIEW = f"""
CREATE VIEW results AS SELECT experiments.name AS experiment, {", ".join(f'cells."{name}"' for name in CELL_COLUMNS)},
    cells.options, questions.name AS question_id, questions.question, answers.status, answers.text AS answer,
    answers.error, answers.message, answers.notes, answers.route, answers.calls, answers.input_tokens,
    answers.output_tokens, answers.cached_tokens, answers.estimated, answers.embedded_tokens, answers.context_tokens,
    answers.context_embedder_tokens, answers.context_chunks,
    (SELECT json_group_object(metric, value) FROM scores WHERE scores.answer = answers.id) AS scores,
    {_MEASURED}
    FROM answers JOIN cells ON cells.id = answers.cell JOIN questions ON questions.id = answers.question
    JOIN experiment_cells ON experiment_cells.cell = cells.id
    JOIN experiment_questions ON experiment_questions.question = questions.id
        AND experiment_questions.experiment = experiment_cells.experiment
    JOIN experiments ON experiments.id = experiment_cells.experiment
"""


def _fault_of(connection: sqlite3.Connection) -> str | None:
    kinds = {
        name: {column.name: column.kind for column in table.columns if column.kind is not None}
        for name, table in TABLES.items()
    }
    return fault_of(connection, {**kinds, "embedders": {"number": ANY_WHOLE, "name": TEXT, "dimension": PLACE}})


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
    "keep a copy, and start another file; `sqlite3 FILE .recover` saves what can be read",
    _fault_of,
)
"""The format of a results file."""
