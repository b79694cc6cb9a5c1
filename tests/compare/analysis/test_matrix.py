"""The matrix of results has what the file has, and no more than the experiment has now."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from math import fsum

import numpy as np
import pytest

from oprag.compare.analysis.matrix import question_fields
from oprag.compare.analysis.summary import ANSWERED, NOT_TRIED
from oprag.compare.db.records import QuestionRecord
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.results import Results
from oprag.compare.running.run import run
from tests.compare.analysis.matrices import made, results_of
from tests.compare.folders import experiment_of, model, write_data, write_experiment
from tests.compare.helpers import RecordingModel, experiment, keepers

PRICES = {"m": {"input": 2.0, "output": 10.0}}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A file with two data sets, one of them of twelve documents, seeds, repeats, failures, measurements and costs."""
    path = tmp_path_factory.mktemp("ran") / "results.db"
    books = keepers(documents=12, questions=1, words=80)
    again = replace(books.questions[0], id="again")
    data = {"books": replace(books, questions=(*books.questions, again)), "keepers": keepers(1, 4)}
    model = RecordingModel(fails=lambda text, before: ("number 3" in text and "quill" in text) or len(text) % 7 == 0)
    grid = [
        {"k": [4, 2], "chunk_size": 32, "order": ["random", "source", "rank"], "seed": [1, 2, 3, 4]},
        {"k": 2, "chunk_size": 32, "method": ["self_route", "closed_book", "context_only"], "repeat": [1, 2]},
    ]
    run(experiment(model, grid=grid, prices=PRICES).replace(data=data), path)
    # Every other answer was measured.
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE answers SET seconds = 1.5 * rowid, cpu_seconds = 0.5 + rowid, peak_memory_mib = 100 + rowid "
            "WHERE rowid % 2 AND status = 'answered'"
        )
    return path


def mean_over(by_cell):
    """The mean of each question that all cells have, counted one by one."""
    first, *others = by_cell
    return {
        question: value + fsum(other[question] - value for other in others) / len(by_cell)
        for question, value in first.items()
        if all(question in other for other in others)
    }


def known(row):
    return {number: value for number, value in enumerate(row.tolist()) if not np.isnan(value)}


def test_settings_have_the_means_of_their_cells(path):
    matrix = Results.open(path).matrix
    for name, values in matrix.values.items():
        for row, setting in zip(matrix.setting_values(name), matrix.settings, strict=True):
            assert known(row) == mean_over([known(values[cell]) for cell in setting.rows]), name


def test_money_is_that_of_the_tokens(path):
    matrix = Results.open(path).matrix
    money, read, written = (matrix.values[name] for name in ("money", "input_tokens", "output_tokens"))
    known = ~np.isnan(read)
    assert money[known] == pytest.approx((2 * read[known] + 10 * written[known]) / 1e6)
    assert np.isnan(money[~known]).all()
    assert known.any()
    # Nobody is asked for a context, and that is not for nothing.
    alone = [row for row, cell in enumerate(matrix.cells) if cell.values["method"] == "context_only"]
    assert np.isnan(matrix.values["calls"][alone]).all()
    answered = matrix.status[alone] == ANSWERED
    assert np.array_equal(~np.isnan(matrix.values["context_tokens"][alone]), answered)


def question(about=None, evidence=()):
    return QuestionRecord("key", "book", "q1", "Who?", ("Ann",), (), None, evidence, {"a": 9, "b": 9}, about or {})


@pytest.mark.parametrize(
    ("evidence", "spread"),
    [
        ([("a", 0, 10)], False),
        ([("a", 0, 10), ("a", 2010, 2020)], False),
        ([("a", 0, 10), ("a", 2011, 2020)], True),
        # Each is near the next one, and the first far from the last.
        ([("a", 3000, 3010), ("a", 0, 10), ("a", 1500, 1510)], True),
        ([("a", 0, 10), ("b", 0, 10)], True),
    ],
)
def test_evidence_is_spread_over_documents_or_far_apart(evidence, spread):
    assert question_fields(question(evidence=evidence)) == {"evidence_spans": len(evidence), "spread": spread}


def test_names_of_axes_metrics_costs_and_columns_are_told_apart():
    fields = question_fields(question({"order": 1, "token_f1": 2, "answer": 3, "kind": 4}), taken=("token_f1",))
    assert fields == {"question_order": 1, "question_token_f1": 2, "question_answer": 3, "kind": 4}


def test_only_plain_values_are_fields():
    about = {"nested": {"x": 1}, "long": "x" * 300, "empty": "", "nan": float("nan"), "half": 0.5, "yes": True}
    assert question_fields(question(about)) == {"half": 0.5, "yes": True}
    matrix = results_of(made({"a": 1.0, "b": 0.0}), about={"a": {"x": 1}, "b": {"y": 2, "x": 3}})
    assert matrix.field_names == ("x", "y")


@pytest.fixture
def ran(tmp_path):
    """A folder with an experiment that was run."""
    grid = 'method = ["stuff", "context_only"]\norder = ["source", "rank"]\nk = 2\nstitch = false'
    path = write_experiment(tmp_path, grid, model())
    report = run(experiment_of(path), tmp_path / "r.db")
    assert report.complete
    return tmp_path


def test_cells_stand_in_the_sequence_of_the_grid_as_it_is_now(ran):
    grid = 'method = ["context_only", "stuff"]\norder = ["reverse_rank", "rank", "source"]\nk = 2\nstitch = false'
    run(experiment_of(write_experiment(ran, grid, model())), ran / "r.db")
    cells = Results.open(ran / "r.db").matrix.cells
    assert [(cell.values["method"], cell.values["order"]) for cell in cells] == [
        (method, order) for method in ("context_only", "stuff") for order in ("reverse_rank", "rank", "source")
    ]
    assert all(list(cell.values)[:4] == ["chunk_size", "method", "order", "k"] for cell in cells)


def test_cells_and_questions_that_are_no_longer_asked_are_left_out(ran):
    path = write_experiment(ran, 'method = "stuff"\nk = 2\nstitch = false', model(), data="sample = 2")
    run(experiment_of(path), ran / "r.db")
    assert Results.open(ran / "r.db").matrix.status.tolist() == [[ANSWERED] * 2]


def test_questions_that_were_not_tried_have_no_answer(ran):
    path = write_experiment(ran, 'method = "stuff"\nk = 3', model(), max_concurrency=1)
    spent = ResultsFile(ran / "r.db").spent("harbour").calls
    assert run(experiment_of(path, limits={"calls": spent + 1}), ran / "r.db").remaining == 3
    assert sorted(Results.open(ran / "r.db").matrix.status.ravel().tolist()) == [NOT_TRIED] * 3 + [ANSWERED]


@pytest.mark.parametrize(("documents", "clusters"), [(1, 4), (9, 36), (10, 10)])
def test_documents_are_clusters_from_ten_on(tmp_path, documents, clusters):
    path = write_experiment(tmp_path, 'method = "context_only"\nk = 2')
    write_data(tmp_path / "data", documents=documents)
    run(experiment_of(path), tmp_path / "r.db")
    results = Results.open(tmp_path / "r.db").matrix
    assert len(results.clusters) == 4 * documents
    assert len(set(results.clusters.tolist())) == clusters
