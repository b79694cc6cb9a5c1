"""SQL of a results file: strict tables with foreign keys, and views for any SQLite tool."""

from __future__ import annotations

from oprag.compare.db.keys import JUDGED
from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError
from oprag.files.database import Format

__all__ = ["CELL_COLUMNS", "RESULTS"]

_AXES = {
    "data": "TEXT NOT NULL",
    "splitter": "TEXT NOT NULL",
    "chunk_size": "INTEGER",
    "chunk_overlap": "INTEGER",
    "embedder": "TEXT",
    "search": "TEXT NOT NULL",
    "store": "TEXT NOT NULL",
    "order": "TEXT NOT NULL",
    "seed": "INTEGER NOT NULL",
    "k": "INTEGER",
    "token_budget": "INTEGER",
    # The type REAL would turn 0 into 0.0.
    "similarity_threshold": "ANY CHECK (similarity_threshold BETWEEN -1 AND 1)",
    "redundancy_threshold": "ANY CHECK (redundancy_threshold BETWEEN -1 AND 1)",
    "method": "TEXT NOT NULL",
    "model": "TEXT",
    "repeat": "INTEGER NOT NULL",
}
CELL_COLUMNS = tuple(_AXES)
"""Axes with their own column; values of other axes are in `options`, unless they are the default."""

_USAGE = (
    "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, "
    "estimated INTEGER NOT NULL CHECK (estimated IN (0, 1))"
)
_PURPOSE = f"CASE WHEN step LIKE '{JUDGED}%' THEN substr(step, {len(JUDGED) + 1}) ELSE 'answers' END AS purpose"

_SCHEMA = f"""
CREATE TABLE experiments (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, described TEXT NOT NULL) STRICT;
CREATE TABLE runs (id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiments, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, versions TEXT NOT NULL) STRICT;
CREATE TABLE cells (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    {", ".join(f'"{name}" {kind}' for name, kind in _AXES.items())},
    options TEXT NOT NULL, identity TEXT NOT NULL) STRICT;
CREATE TABLE questions (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data TEXT NOT NULL, name TEXT NOT NULL,
    question TEXT NOT NULL, answers TEXT NOT NULL, choices TEXT NOT NULL, right_choice INTEGER, evidence TEXT NOT NULL,
    documents TEXT NOT NULL, about TEXT NOT NULL) STRICT;
CREATE TABLE experiment_cells (experiment INTEGER NOT NULL REFERENCES experiments,
    cell INTEGER NOT NULL REFERENCES cells, PRIMARY KEY (experiment, cell)) STRICT, WITHOUT ROWID;
CREATE TABLE experiment_questions (experiment INTEGER NOT NULL REFERENCES experiments,
    question INTEGER NOT NULL REFERENCES questions, PRIMARY KEY (experiment, question)) STRICT, WITHOUT ROWID;
CREATE TABLE replies (key TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL, step TEXT NOT NULL, text TEXT NOT NULL,
    {_USAGE}, finish_reason TEXT, seconds REAL NOT NULL, money REAL,
    run INTEGER NOT NULL REFERENCES runs, at TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX replies_by_run ON replies (run);
CREATE TABLE failed_calls (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, step TEXT NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL) STRICT;
CREATE TABLE indexes (key TEXT NOT NULL PRIMARY KEY, documents TEXT NOT NULL, splitter TEXT NOT NULL,
    chunk_size INTEGER NOT NULL, chunk_overlap INTEGER NOT NULL, tokenizer TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE chunks ("index" TEXT NOT NULL REFERENCES indexes, row INTEGER NOT NULL, document TEXT NOT NULL,
    page INTEGER, start INTEGER NOT NULL, "end" INTEGER NOT NULL CHECK ("end" >= start), tokens INTEGER NOT NULL,
    PRIMARY KEY ("index", row)) STRICT, WITHOUT ROWID;
CREATE TABLE retrievals (key TEXT NOT NULL PRIMARY KEY, "index" TEXT NOT NULL REFERENCES indexes, embedder TEXT,
    search TEXT NOT NULL, store TEXT NOT NULL, question TEXT NOT NULL, depth INTEGER, hits TEXT NOT NULL)
    STRICT, WITHOUT ROWID;
CREATE TABLE contexts (key TEXT NOT NULL PRIMARY KEY, "index" TEXT NOT NULL REFERENCES indexes,
    kept TEXT NOT NULL, dropped TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE answers (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cells,
    question INTEGER NOT NULL REFERENCES questions, status TEXT NOT NULL CHECK (status IN ('answered', 'failed')),
    text TEXT, error TEXT CHECK ((error IS NULL) = (status = 'answered')), message TEXT, notes TEXT NOT NULL,
    route TEXT, calls INTEGER NOT NULL, {_USAGE}, embedded_tokens INTEGER NOT NULL, context_tokens INTEGER,
    context_embedder_tokens INTEGER, context_chunks INTEGER, seconds REAL, cpu_seconds REAL, peak_memory_mib REAL,
    context TEXT REFERENCES contexts, run INTEGER NOT NULL REFERENCES runs, UNIQUE (cell, question)) STRICT;
CREATE TABLE calls (answer INTEGER NOT NULL REFERENCES answers ON DELETE CASCADE, number INTEGER NOT NULL,
    step TEXT NOT NULL, reply TEXT NOT NULL REFERENCES replies, PRIMARY KEY (answer, number)) STRICT, WITHOUT ROWID;
CREATE TABLE scores (answer INTEGER NOT NULL REFERENCES answers ON DELETE CASCADE, metric TEXT NOT NULL,
    value REAL NOT NULL, PRIMARY KEY (answer, metric)) STRICT, WITHOUT ROWID;
{VECTOR_SCHEMA}
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
    JOIN experiments ON experiments.id = experiment_cells.experiment;
CREATE VIEW spending AS SELECT experiments.name AS experiment, model, purpose, sum(calls) AS calls,
    sum(tokens) AS tokens, sum(money) AS money FROM (
        SELECT run, model, {_PURPOSE}, 1 AS calls, input_tokens + output_tokens AS tokens, coalesce(money, 0.0) AS money
        FROM replies UNION ALL SELECT run, model, {_PURPOSE}, 1, 0, 0.0 FROM failed_calls
    ) JOIN runs ON runs.id = run JOIN experiments ON experiments.id = runs.experiment
    GROUP BY experiments.name, model, purpose;
"""

RESULTS = Format(
    noun="results file",
    application=0x6F705265,  # "opRe"
    version=1,
    schema=_SCHEMA,
    error=ResultsFileError,
    advice="keep a copy and start a new file; `sqlite3 FILE .recover` saves the readable rows",
    checked=True,
)
"""Format of a results file."""
