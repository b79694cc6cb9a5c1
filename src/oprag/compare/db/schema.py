"""SQL of a results file: strict tables with foreign keys, and views for any SQLite tool."""

from __future__ import annotations

from oprag._internal.files.database import Format
from oprag.compare.db.keys import JUDGED
from oprag.compare.db.records import CELL_COLUMNS
from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError

__all__ = ["RESULTS"]

_USAGE = (
    "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, "
    "estimated INTEGER NOT NULL CHECK (estimated IN (0, 1))"
)
_AXES = ", ".join(f"""json_extract(cells."values", '$.{name}') AS "{name}\"""" for name in CELL_COLUMNS)
_OTHERS = ", ".join(f"'$.{name}'" for name in CELL_COLUMNS)
_PURPOSE = f"CASE WHEN step LIKE '{JUDGED}%' THEN substr(step, {len(JUDGED) + 1}) ELSE 'answers' END AS purpose"

# Lists and mappings are JSON; `cells` and `questions` of an experiment are lists of keys.
_SCHEMA = f"""
CREATE TABLE experiments (name TEXT NOT NULL PRIMARY KEY, described TEXT NOT NULL, cells TEXT NOT NULL,
    questions TEXT NOT NULL) STRICT;
CREATE TABLE runs (id INTEGER PRIMARY KEY, experiment TEXT NOT NULL REFERENCES experiments, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, versions TEXT NOT NULL) STRICT;
CREATE TABLE cells (key TEXT NOT NULL PRIMARY KEY, "values" TEXT NOT NULL, identity TEXT NOT NULL) STRICT;
CREATE TABLE questions (key TEXT NOT NULL PRIMARY KEY, data TEXT NOT NULL, name TEXT NOT NULL, question TEXT NOT NULL,
    answers TEXT NOT NULL, choices TEXT NOT NULL, right_choice INTEGER, evidence TEXT NOT NULL,
    documents TEXT NOT NULL, about TEXT NOT NULL) STRICT;
CREATE TABLE replies (key TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL, step TEXT NOT NULL, text TEXT NOT NULL,
    {_USAGE}, finish_reason TEXT, seconds REAL NOT NULL, money REAL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX replies_by_run ON replies (run);
CREATE TABLE failed_calls (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, step TEXT NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL) STRICT;
CREATE TABLE chunks ("index" TEXT NOT NULL, row INTEGER NOT NULL, document TEXT NOT NULL, page INTEGER,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL CHECK ("end" >= start), tokens INTEGER NOT NULL,
    PRIMARY KEY ("index", row)) STRICT, WITHOUT ROWID;
CREATE TABLE answers (cell TEXT NOT NULL REFERENCES cells, question TEXT NOT NULL REFERENCES questions,
    status TEXT NOT NULL AS (iif(error IS NULL, 'answered', 'failed')), text TEXT, error TEXT, message TEXT,
    notes TEXT NOT NULL, route TEXT, calls INTEGER NOT NULL, {_USAGE}, embedded_tokens INTEGER NOT NULL,
    context_tokens INTEGER, context_embedder_tokens INTEGER, context_chunks INTEGER, seconds REAL, cpu_seconds REAL,
    peak_memory_mib REAL, context TEXT, scores TEXT NOT NULL, replies TEXT NOT NULL,
    run INTEGER NOT NULL REFERENCES runs, PRIMARY KEY (cell, question),
    CHECK ((seconds IS NULL) + (cpu_seconds IS NULL) + (peak_memory_mib IS NULL) IN (0, 3))) STRICT;
{VECTOR_SCHEMA}
CREATE VIEW results AS SELECT experiments.name AS experiment, {_AXES},
    json_remove(cells."values", {_OTHERS}) AS options, questions.name AS question_id, questions.question,
    answers.status, answers.text AS answer, answers.error, answers.message, answers.notes, answers.route,
    answers.calls, answers.input_tokens, answers.output_tokens, answers.cached_tokens, answers.estimated,
    answers.embedded_tokens, answers.context_tokens, answers.context_embedder_tokens, answers.context_chunks,
    answers.seconds, answers.cpu_seconds, answers.peak_memory_mib, answers.scores
    FROM experiments JOIN json_each(experiments.cells) AS cell JOIN json_each(experiments.questions) AS asked
    JOIN answers ON answers.cell = cell.value AND answers.question = asked.value
    JOIN cells ON cells.key = answers.cell JOIN questions ON questions.key = answers.question;
CREATE VIEW spending AS SELECT runs.experiment, model, purpose, sum(calls) AS calls, sum(tokens) AS tokens,
    sum(money) AS money FROM (
        SELECT run, model, {_PURPOSE}, 1 AS calls, input_tokens + output_tokens AS tokens, coalesce(money, 0.0) AS money
        FROM replies UNION ALL SELECT run, model, {_PURPOSE}, 1, 0, 0.0 FROM failed_calls
    ) JOIN runs ON runs.id = run GROUP BY runs.experiment, model, purpose;
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
