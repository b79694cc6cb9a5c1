"""The matrix of results has what the file has, and what the modules have that do not read from it yet."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.analysis.matrix import ANSWERED, COSTS, FAILED, NOT_ASKED, NOT_TRIED, read_matrix
from oprag.compare.db.records import Measurement, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.quantities import read_seconds, values_by_question
from oprag.compare.reading import CellAnswers, KeptAnswer, read_results
from oprag.compare.running.run import run
from oprag.compare.setting import settings_of
from oprag.compare.table import metrics_of
from oprag.errors import ExperimentError, ResultsFileError
from tests.compare.analysis.matrices import DEFAULTS, made, results_of
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
    run(experiment(model, grid=grid, prices=PRICES).changed(data=data), path)
    results = read_results(path)
    file = ResultsFile(path, run=1)
    # Every other cell was measured, and not in all phases nor for all questions.
    for number, cell in enumerate(results.cells):
        taken = [
            Measurement(cell.key, key, attempt, phase, 0.1 * place + number + 0.01 * attempt, 50.0, 1_000 + place, 10)
            for place, key in enumerate(cell.answers)
            for phase in ("retrieval", "generation")
            for attempt in (1, 2)
            if (place + number) % 3 and (phase == "retrieval" or place % 2)
        ]
        if number % 2:
            file.put_measurements(cell.key, taken, Spent())
    file.close()
    return path


def same_as_before(matrix, results, seconds=None):
    """Whether each setting has the same values, to the last bit, by both readings."""
    before = settings_of(results.cells)
    assert [one.values for one in matrix.settings] == [one.values for one in before]
    for name in (*metrics_of(results), *COSTS):
        if name == "money":
            continue
        found = matrix.setting_values(name)
        for row, setting in zip(found, before, strict=True):
            there = dict(zip((question.key for question in matrix.questions), row.tolist(), strict=True))
            wanted = values_by_question(setting, name, seconds or {})
            assert {key: value for key, value in there.items() if not np.isnan(value)} == wanted, name


def test_it_has_what_was_read_before(path):
    matrix, results = read_matrix(path), read_results(path)
    assert (matrix.experiment, matrix.described) == (results.experiment, results.described)
    assert [(cell.key, cell.values) for cell in matrix.cells] == [(cell.key, cell.values) for cell in results.cells]
    assert list(matrix.metrics) == metrics_of(results)
    same_as_before(matrix, results, read_seconds(results, path))
    for row, cell in enumerate(results.cells):
        assert cell.asked == int(np.sum(matrix.status[row] != NOT_ASKED))
        for column, question in enumerate(matrix.questions):
            answer = cell.answers.get(question.key)
            state = matrix.status[row, column]
            assert state == (
                (NOT_TRIED if question.data == cell.values["data"] else NOT_ASKED)
                if answer is None
                else FAILED
                if answer.failed
                else ANSWERED
            )
            assert matrix.notes.get((row, column), ()) == (() if answer is None else answer.notes)
            assert matrix.errors.get((row, column)) == (None if answer is None else answer.error)
    assert {FAILED, NOT_ASKED, ANSWERED} <= set(matrix.status.ravel().tolist())
    assert "self_route" in {matrix.cells[cell].values["method"] for cell, _ in matrix.routes}


def test_questions_of_one_document_are_one_cluster_where_there_are_ten(path):
    matrix, results = read_matrix(path), read_results(path)
    by_number: dict[int, set[object]] = {}
    for question, number in zip(matrix.questions, matrix.clusters.tolist(), strict=True):
        by_number.setdefault(number, set()).add(results.clusters[question.key])
    assert all(len(clusters) == 1 for clusters in by_number.values())
    assert len(by_number) == len(set(results.clusters.values())) == 12 + 4


def test_money_is_that_of_the_tokens(path):
    matrix = read_matrix(path)
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


def test_what_was_measured_of_phases(path):
    matrix = read_matrix(path)
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute(
            "SELECT key, phase, count(*), sum(cpu_percent), max(peak_memory_bytes), max(memory_growth_bytes) "
            "FROM measurements JOIN cells ON cells.id = cell GROUP BY key, phase"
        ).fetchall()
    found = {(matrix.cells[cell].key, phase, *use) for (cell, phase), use in matrix.phase_use.items()}
    assert found == set(rows)


def test_a_part_of_it_is_the_same(path):
    matrix = read_matrix(path)
    settings = [number for number, one in enumerate(matrix.settings) if one.values.get("k") == 2]
    wanted = np.array([question.data == "books" for question in matrix.questions])
    part = matrix.select(settings, wanted)
    assert [one.values for one in part.settings] == [matrix.settings[number].values for number in settings]
    assert part.clusters.tolist() == matrix.clusters[wanted].tolist()
    for name in matrix.values:
        expected = matrix.setting_values(name)[settings][:, wanted]
        assert np.array_equal(part.setting_values(name), expected, equal_nan=True)
    assert part.status.shape == (len(part.cells), wanted.sum())
    keys = {(matrix.cells[cell].key, matrix.questions[one].key): note for (cell, one), note in matrix.errors.items()}
    for (cell, question), error in part.errors.items():
        assert keys[part.cells[cell].key, part.questions[question].key] == error
    everything = matrix.select()
    assert everything.errors == matrix.errors
    assert everything.phase_use == matrix.phase_use


scores = st.lists(
    st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.floats(-1, 1), min_size=1), min_size=1, max_size=8
)


@given(scores, st.lists(st.sampled_from([("source", 0), ("random", 1), ("random", 2)]), min_size=8, max_size=8))
def test_settings_have_the_values_and_the_ties_of_the_present_reading(given_scores, kinds):
    cells, before = [], []
    for number, (one, (order, k)) in enumerate(zip(given_scores, kinds, strict=False)):
        values = {"order": order, "seed": number, "k": k + 1}
        cells.append(made(one, **values))
        answers = {
            key: KeptAnswer(score is None, 2, 10, 3, 1, 5, None, {} if score is None else {"token_f1": score})
            for key, score in one.items()
        }
        before.append(CellAnswers(str(number), {**DEFAULTS, **values}, 8, answers))
    matrix = results_of(*cells)
    old = settings_of(before)
    for row, setting in zip(matrix.setting_values("token_f1").tolist(), old, strict=True):
        keys = [question.key for question in matrix.questions]
        there = {key: value for key, value in zip(keys, row, strict=True) if not np.isnan(value)}
        assert there == setting.scores("token_f1")


def test_the_sequence_of_seeds_does_not_break_a_tie():
    # Rounded one after another, these sums would differ in their last digit.
    seeds = [0.0, 0.5, 0.9, 0.4, 0.2]
    cells = [
        made({"a": score}, order="random", seed=seed, k=k)
        for k, sequence in ((1, seeds), (2, [seeds[0], *seeds[:0:-1]]))
        for seed, score in enumerate(sequence)
    ]
    one, other = results_of(*cells).setting_values("token_f1")[:, 0]
    assert one == other


def test_of_an_experiment_without_answers_there_is_nothing():
    matrix = results_of(made({}), questions=["a"])
    assert matrix.metrics == ()
    assert matrix.values == {}
    assert np.isnan(matrix.setting_values("token_f1")).all()
    assert matrix.status.tolist() == [[NOT_TRIED]]


def test_a_score_that_is_called_as_a_cost_is_not_taken_for_it():
    matrix = results_of(made({"a": 0.5}), metric="calls")
    assert matrix.values["calls"].tolist() == [[2.0]]
    assert matrix.metrics == ()


def test_one_experiment_of_several_has_to_be_named(tmp_path):
    path = tmp_path / "results.db"
    for name in ("first", "second"):
        run(experiment(data=keepers(1, 1), grid={"k": 1, "method": "context_only"}, name=name), path)
    with pytest.raises(ExperimentError, match="several experiments; there are: first, second"):
        read_matrix(path)
    assert read_matrix(path, "second").experiment == "second"
    with pytest.raises(ResultsFileError, match="there is no results file"):
        read_matrix(tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_file_of_few_answers_takes_no_memory(monkeypatch):
    monkeypatch.setattr("oprag.compare.analysis.matrix._PLACES", 1_000)
    questions = [str(number) for number in range(40)]
    cells = [made(dict.fromkeys(questions[:1], 1.0), k=k + 1) for k in range(30)]
    assert results_of(*cells, questions=questions).status.shape == (30, 40)
    few = [made({}, k=k + 1) for k in range(29)]
    with pytest.raises(ResultsFileError, match=r"has 1 answers or scores for 1,200 places .*: too few to be read"):
        results_of(cells[-1], *few, questions=questions)
