import sqlite3
from contextlib import closing

from oprag.compare.db.schema import CELL_COLUMNS, RESULTS, TABLES

FORMAT_1 = """
CREATE TABLE experiments (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, described TEXT NOT NULL);
CREATE TABLE runs (id INTEGER PRIMARY KEY, experiment INTEGER NOT NULL REFERENCES experiments, started TEXT NOT NULL,
    ended TEXT, outcome TEXT, versions TEXT NOT NULL);
CREATE TABLE cells (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, "data", "splitter", "chunk_size",
    "chunk_overlap", "embedder", "search", "store", "order", "seed", "k", "token_budget", "similarity_threshold",
    "redundancy_threshold", "method", "model", "repeat", options TEXT NOT NULL,
    identity TEXT NOT NULL);
CREATE TABLE questions (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data TEXT NOT NULL, name TEXT NOT NULL,
    question TEXT NOT NULL, answers TEXT NOT NULL, choices TEXT NOT NULL, right_choice INTEGER, evidence TEXT NOT
    NULL,
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
    context_embedder_tokens INTEGER, context_chunks INTEGER, seconds REAL, cpu_seconds REAL,
    peak_memory_mib REAL, context INTEGER REFERENCES contexts,
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
    CREATE TABLE embedders (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL);
    CREATE TABLE vectors (embedder INTEGER NOT NULL, hash BLOB NOT NULL, vector BLOB NOT NULL,
        PRIMARY KEY (embedder, hash)) WITHOUT ROWID;
;
CREATE VIEW results AS SELECT experiments.name AS experiment, cells."data", cells."splitter", cells."chunk_size",
    cells."chunk_overlap", cells."embedder", cells."search", cells."store", cells."order", cells."seed", cells."k",
    cells."token_budget", cells."similarity_threshold", cells."redundancy_threshold", cells."method", cells."model",
    cells."repeat",
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


def definitions(schema):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(schema)
        rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {(*about, sql and " ".join(sql.split())) for *about, sql in rows}


def test_the_tables_are_those_of_format_1():
    """A file with other definitions is refused, so no file of an earlier version could be opened."""
    assert RESULTS.version == 1
    assert definitions(RESULTS.schema) == definitions(FORMAT_1)


# Everything else that is text holds no message: secrets cannot be masked there.
CONTENT = {
    "names and versions": {
        "experiments.name",
        "experiments.described",
        "runs.versions",
        "cells.options",
        "cells.identity",
        "replies.model",
        "failed_calls.model",
        "failed_calls.error",
        "answers.error",
        "scores.metric",
        "indexes.splitter",
        "indexes.tokenizer",
        "retrievals.embedder",
        "retrievals.search",
        "retrievals.store",
        "answers.status",
        "answers.route",
        "replies.step",
        "failed_calls.step",
        "calls.step",
        "replies.finish_reason",
    },
    "times": {"runs.started", "runs.ended", "replies.at", "failed_calls.at"},
    "keys and digests, which hang on each other": {
        "cells.key",
        "questions.key",
        "replies.key",
        "replies.digest",
        "failed_calls.key",
        "answers.digest",
        "calls.reply",
        "contexts.key",
        "indexes.key",
        "retrievals.key",
    },
    "the data set, answers and scores hang on it": {
        "questions.data",
        "questions.name",
        "questions.question",
        "questions.answers",
        "questions.choices",
        "questions.evidence",
        "questions.documents",
        "questions.about",
        "indexes.documents",
        "chunks.document",
        "retrievals.question",
    },
    "what models have said": {"replies.text", "answers.text"},
    "numbers": {"contexts.kept", "contexts.dropped", "retrievals.hits"},
}


def test_each_column_of_text_is_masked_or_has_a_reason_not_to_be():
    texts = {
        f"{name}.{column.name}": column.masked
        for name, table in TABLES.items()
        for column in table.columns
        if " TEXT" in column.ddl
    }
    reasons = [name for names in CONTENT.values() for name in names]
    assert {name for name, masked in texts.items() if not masked} == set(reasons)
    assert len(reasons) == len(set(reasons))
    assert {column.name for column in TABLES["cells"].columns} >= set(CELL_COLUMNS)
