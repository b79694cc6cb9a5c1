"""Metrics that are functions of a user's own: how they are named, found and called."""

import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oprag.compare import Question, Results, ScoredAnswer, compare, metric, run
from oprag.compare.grid import axes
from oprag.compare.metrics.registry import METRICS, RESERVED, check_metric_names
from oprag.errors import ExperimentError, OpragError, OptionError
from tests.compare.helpers import RecordingModel, experiment, keepers, rows


def words(answer: ScoredAnswer) -> int:
    return len(answer.text.split())


@metric(of="context", higher_is_better=False, version=3)
def sources(answer):
    return len({chunk.source for chunk in answer.context.kept})


def fails(answer):
    raise KeyError(f"sk-{'a1B2' * 10} {'x' * 5_000}")


GIVEN: list[Any] = []


def gives(answer):
    return GIVEN[0]


async def later(answer):
    return 1.0


def scores(path, name):
    return [value for (value,) in rows(path, f"SELECT json_extract(scores, '$.{name}') FROM results")]


def test_it_is_compared_as_any_other(tmp_path):
    grid = {"k": [2, 4], "chunk_size": 32, "order": ["source", "rank"]}
    results = compare(experiment(RecordingModel(), grid=grid, metrics=[words, sources]), tmp_path / "one.db")
    assert results.metrics == ("words", "sources")
    assert results.metric == "words"
    assert results.best().metric == "words"
    assert all(row["words_low"] <= row["words"] <= row["words_high"] for row in results.rows)
    # The file tells those that read it later.
    again = Results.open(tmp_path / "one.db")
    assert again.metric == "words"
    with pytest.raises(
        OptionError, match="sources cannot rank settings: its function is declared with higher_is_better=False"
    ):
        again.best("sources")
    assert run(experiment(RecordingModel(), grid=grid, metrics=[sources]), tmp_path / "two.db").complete
    with pytest.raises(OptionError, match="no metric for which higher is better has scores"):
        _ = Results.open(tmp_path / "two.db").metric


@pytest.mark.parametrize(
    ("value", "score"),
    [
        *((value, float(value)) for value in (1, 0.25, True, Fraction(1, 4), Decimal("0.5"), np.float32(0.5))),
        (np.bool_(True), 1.0),
        *((wrong, None) for wrong in (float("nan"), float("inf"), "0.5", [0.5], None.__class__, 1j, 10**400)),
    ],
    ids=str,
)
def test_what_is_no_number_is_a_note(value, score, tmp_path):
    GIVEN[:] = [value]
    path = tmp_path / "one.db"
    assert run(experiment(RecordingModel(), data=keepers(1, 1), metrics=["token_f1", gives]), path).complete
    ((found, notes),) = rows(path, "SELECT scores, notes FROM results")
    assert json.loads(found).get("gives") == score
    assert len(json.loads(notes)) == (score is None)
    if score is None:
        assert re.match("no gives: it returned .*; a metric must return a finite number or None", json.loads(notes)[0])
        assert "token_f1" in json.loads(found)


def test_an_exception_is_a_note_without_secrets(tmp_path):
    path = tmp_path / "one.db"
    assert run(experiment(RecordingModel(), metrics=[fails, "token_f1"]), path).complete
    notes = {note for (found,) in rows(path, "SELECT notes FROM results") for note in json.loads(found)}
    (note,) = notes
    assert note.startswith("no fails: KeyError: ")
    assert len(note) < 2_100
    assert "a1B2a1B2" not in note
    assert len([value for value in scores(path, "token_f1") if value is not None]) == 6


def test_another_version_scores_again_without_a_call(tmp_path):
    def first(answer):
        return 1.0

    path, model = tmp_path / "one.db", RecordingModel()
    assert run(experiment(model, metrics=[metric(version=1)(first)]), path).complete
    calls = len(model.calls)
    assert run(experiment(model, metrics=[metric(version=2)(first)]), path).answered == 6
    assert len(model.calls) == calls


def named(name):
    def function(answer):
        return 1.0

    function.__qualname__ = name
    return function


@pytest.mark.parametrize(
    ("metrics", "error", "words_of_it"),
    [
        (["f1"], ExperimentError, "unknown metric 'f1'; use one of token_f1, "),
        (["my_module:f1"], ExperimentError, "unknown metric 'my_module:f1'; use one of token_f1, "),
        ([named("token_f1")], ExperimentError, "a metric named 'token_f1' already exists"),
        ([named("order")], ExperimentError, "a metric cannot be named 'order'"),
        ([named("score"), named("score")], ExperimentError, "two metrics are named 'score'"),
        ([lambda answer: 1.0], ExperimentError, "a metric is a lambda; use a named function"),
        ([later], OpragError, "a metric must not be async, got function; pass a sync function"),
        ([7], ExperimentError, "a metric must be a name or a function, got 7"),
    ],
)
def test_what_cannot_be_a_metric_is_refused(metrics, error, words_of_it):
    with pytest.raises(error, match=words_of_it):
        experiment(metrics=metrics)


@pytest.mark.parametrize("wrong", [{"of": "chunks"}, {"higher_is_better": "no"}, {"version": 0}])
def test_a_wrong_declaration_is_refused(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        metric(**wrong)


def test_every_column_of_results_is_reserved(tmp_path):
    results = compare(experiment(RecordingModel(), metrics=["token_f1"]), tmp_path / "one.db")
    results.to_csv(tmp_path / "settings.csv")
    results.to_csv(tmp_path / "answers.csv", answers=True)
    columns = {
        name
        for file in ("settings", "answers")
        for name in (tmp_path / f"{file}.csv").read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    }
    assert {name for name in columns if not name.startswith("token_f1")} <= RESERVED | set(axes())
    check_metric_names([*METRICS])


@pytest.mark.parametrize(("right", "text", "score"), [(4, "E. e", 1), (3, "E. e", 0), (3, "Either", 0), (4, "D. d", 0)])
def test_a_question_with_five_options_has_five_letters(right, text, score):
    question = Question(id="1", text="Which?", documents=(), choices=tuple("abcde"), right_choice=right)
    assert METRICS["choice_accuracy"].score(ScoredAnswer(question=question, method="stuff", text=text)) == score
