"""The tables of a results file. They are made for people: any tool that reads SQLite shows everything."""

from __future__ import annotations

from oprag.compare.db.check import fault_of
from oprag.embedding.cache_file import VECTOR_SCHEMA
from oprag.errors import ResultsFileError
from oprag.files.database import Format

__all__ = ["CELL_COLUMNS", "RESULTS"]

CELL_COLUMNS = (
    "data",
    "splitter",
    "chunk_size",
    "chunk_overlap",
    "embedder",
    "search",
    "store",
    "order",
    "seed",
    "k",
    "token_budget",
    "similarity_threshold",
    "redundancy_threshold",
    "method",
    "model",
    "repeat",
)
"""The axes that are columns of their own; the others stand in `options`, where they are not the default."""

_CELL_COLUMNS = ", ".join(f'"{name}"' for name in CELL_COLUMNS)

_MEASURED = ", ".join(
    f"(SELECT avg({column}) FROM measurements WHERE measurements.cell = answers.cell "
    f"AND measurements.question = answers.question AND phase = '{phase}') AS {phase}_{column}"
    for phase in ("retrieval", "generation")
    for column in ("seconds", "cpu_percent", "peak_memory_bytes")
)
"""What is empty where nothing was measured."""

_SCHEMA = f"""
CREATE TABLE experiments (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, described TEXT NOT NULL);
CREATE TABLE runs (id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiments, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, versions TEXT NOT NULL);
CREATE TABLE cells (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, {_CELL_COLUMNS}, options TEXT NOT NULL,
    identity TEXT NOT NULL);
CREATE TABLE questions (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data TEXT NOT NULL, name TEXT NOT NULL,
    question TEXT NOT NULL, answers TEXT NOT NULL, choices TEXT NOT NULL, right_choice INTEGER, evidence TEXT NOT NULL,
    documents TEXT NOT NULL, about TEXT NOT NULL);
CREATE TABLE experiment_cells (experiment INTEGER NOT NULL, cell INTEGER NOT NULL, PRIMARY KEY (experiment, cell))
    WITHOUT ROWID;
CREATE TABLE experiment_questions (experiment INTEGER NOT NULL, question INTEGER NOT NULL,
    PRIMARY KEY (experiment, question)) WITHOUT ROWID;
CREATE TABLE replies (key TEXT NOT NULL PRIMARY KEY, model TEXT NOT NULL, step TEXT NOT NULL, text TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL, finish_reason TEXT, seconds REAL NOT NULL,
    digest TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs, money REAL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX replies_by_run ON replies (run);
CREATE TABLE failed_calls (id INTEGER PRIMARY KEY, key TEXT NOT NULL, model TEXT NOT NULL, step TEXT NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, seconds REAL NOT NULL, run INTEGER NOT NULL REFERENCES runs,
    at TEXT NOT NULL);
CREATE TABLE answers (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cells,
    question INTEGER NOT NULL REFERENCES questions, status TEXT NOT NULL CHECK (status IN ('answered', 'failed')),
    text TEXT, error TEXT, message TEXT, notes TEXT NOT NULL, route TEXT, calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL, embedded_tokens INTEGER NOT NULL, context_tokens INTEGER,
    context_embedder_tokens INTEGER, context_chunks INTEGER, context INTEGER REFERENCES contexts,
    digest TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs, UNIQUE (cell, question));
CREATE TABLE calls (answer INTEGER NOT NULL REFERENCES answers, number INTEGER NOT NULL, step TEXT NOT NULL,
    reply TEXT NOT NULL, PRIMARY KEY (answer, number)) WITHOUT ROWID;
CREATE TABLE scores (answer INTEGER NOT NULL REFERENCES answers, metric TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (answer, metric)) WITHOUT ROWID;
CREATE TABLE contexts (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, "index" INTEGER NOT NULL REFERENCES indexes,
    kept TEXT NOT NULL, dropped TEXT NOT NULL);
CREATE TABLE indexes (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, documents TEXT NOT NULL,
    splitter TEXT NOT NULL, chunk_size INTEGER NOT NULL, chunk_overlap INTEGER NOT NULL, tokenizer TEXT NOT NULL,
    chunks INTEGER NOT NULL, tokens INTEGER NOT NULL);
CREATE TABLE chunks ("index" INTEGER NOT NULL REFERENCES indexes, row INTEGER NOT NULL, document TEXT NOT NULL,
    page INTEGER, start INTEGER NOT NULL, "end" INTEGER NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY ("index", row)) WITHOUT ROWID;
CREATE TABLE retrievals (key TEXT NOT NULL PRIMARY KEY, "index" INTEGER NOT NULL REFERENCES indexes,
    embedder TEXT, search TEXT NOT NULL, store TEXT NOT NULL, question TEXT NOT NULL, depth INTEGER,
    hits TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE measurements (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cells,
    question INTEGER NOT NULL REFERENCES questions, attempt INTEGER NOT NULL,
    phase TEXT NOT NULL CHECK (phase IN ('indexing', 'retrieval', 'generation')), seconds REAL NOT NULL,
    cpu_percent REAL NOT NULL, peak_memory_bytes INTEGER NOT NULL, memory_growth_bytes INTEGER NOT NULL,
    run INTEGER NOT NULL REFERENCES runs, UNIQUE (cell, question, attempt, phase));
CREATE TABLE failed_measurements (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs,
    cell INTEGER NOT NULL REFERENCES cells, question INTEGER NOT NULL REFERENCES questions, error TEXT NOT NULL,
    message TEXT NOT NULL);
CREATE TABLE measured_calls (run INTEGER NOT NULL REFERENCES runs, cell INTEGER NOT NULL REFERENCES cells,
    calls INTEGER NOT NULL, tokens INTEGER NOT NULL, money REAL NOT NULL);
{VECTOR_SCHEMA};
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

RESULTS = Format(
    "results file",
    0x6F705265,  # "opRe"
    1,
    _SCHEMA,
    ResultsFileError,
    "keep a copy, and start another file; `sqlite3 FILE .recover` saves what can be read",
    fault_of,
)
"""What a results file is."""
