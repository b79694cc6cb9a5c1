"""Judges: metrics whose calls are planned, shared, limited and kept as all others."""

import json
from typing import Any

import pytest

from oprag.compare import Judge, Question, make_plan, run
from oprag.compare.metrics.judge import judge_metric
from oprag.compare.metrics.registry import ScoredAnswer
from oprag.compare.providers.specs import ModelSpec
from oprag.errors import ExperimentError, OptionError, PromptError
from tests.compare.helpers import Judged, RecordingModel, experiment, rows

JUDGED: dict[str, Any] = {"metrics": ["token_f1", "correct"], "judges": {"correct": {"model": "judge"}}}
GRID = {"k": [2, 4], "chunk_size": 32, "order": ["source", "rank"], "method": ["stuff", "refine"], "model": "reader"}


def judged(asked, **options):
    return experiment(models=asked.models, **{"grid": GRID, **JUDGED, **options})


def planned(plan):
    return {name: model.calls for name, model in plan.models.items()}


def answers(path):
    """All that is known of answers, whenever they were made."""
    return rows(
        path, 'SELECT k, "order", method, question_id, status, answer, calls, scores FROM results ORDER BY 1, 2, 3, 4'
    )


def test_what_is_planned_is_what_is_asked(tmp_path):
    path, asked = tmp_path / "one.db", Judged()
    plan = make_plan(judged(asked), path)
    assert asked.calls == {"reader": 0, "judge": 0}
    assert run(judged(asked), path).complete
    assert planned(plan) == asked.calls
    # Each answer is another one, and none of them is judged twice.
    assert asked.calls["judge"] == len(set(asked.judge.calls)) <= 8 * 6
    assert planned(make_plan(judged(asked), path)) == {}
    assert run(judged(asked), path).spent.calls == sum(asked.calls.values())
    scores = [json.loads(found) for *_, found in answers(path)]
    assert {score["correct"] for score in scores} == {0.0, 0.5, 1.0}
    # Its calls are none of the answers' own.
    assert run(judged(asked, metrics=["token_f1"], judges={}), tmp_path / "without.db").complete
    query = "SELECT calls, input_tokens, output_tokens, answer FROM results ORDER BY answer"
    assert rows(path, query) == rows(tmp_path / "without.db", query)


def test_limits_hold_for_judges(tmp_path):
    path, asked = tmp_path / "one.db", Judged()
    most = make_plan(judged(asked)).calls
    for limit in (5, most // 2, most - 1):
        report = run(judged(asked, limits={"calls": limit}, max_concurrency=3), path)
        assert not report.complete
        assert sum(asked.calls.values()) == report.spent.calls == limit
    assert run(judged(asked, limits={"calls": most}), path).complete
    assert sum(asked.calls.values()) == most
    asked = Judged()
    prices = {"reader": {"input": 0, "output": 0}, "judge": {"input": 1_000_000, "output": 0}}
    report = run(judged(asked, prices=prices, limits={"money": 900}), tmp_path / "two.db")
    assert "the limit of 900 money is reached" in report.outcome
    assert 0 < report.spent.money <= 900
    assert 0 < asked.calls["judge"] < most // 2


def test_another_judge_asks_for_judgments_alone(tmp_path):
    path, asked = tmp_path / "one.db", Judged()
    assert run(judged(asked), path).complete
    before = asked.calls
    stricter = {"correct": Judge(model="judge", prompt="Is {answer} right?", grades={"yes": 1, "no": 0})}
    assert planned(make_plan(judged(asked, judges=stricter), path)) == {"judge": before["judge"]}
    assert run(judged(asked, judges=stricter), path).complete
    assert asked.calls == {"reader": before["reader"], "judge": 2 * before["judge"]}
    models = {**asked.models, "judge": ModelSpec(RecordingModel(lambda text: "GRADE: I"), "another")}
    assert run(experiment(models=models, grid=GRID, **JUDGED), path).complete
    assert {json.loads(found)["correct"] for *_, found in answers(path)} == {0.0}


def test_a_reply_without_a_grade_is_a_note(tmp_path):
    models = {"m": ModelSpec(RecordingModel(), "m"), "judge": ModelSpec(RecordingModel(lambda text: "Maybe."), "judge")}
    report = run(experiment(models=models, grid={"k": 2, "model": "m"}, **JUDGED), tmp_path / "one.db")
    assert report.complete
    for scores, notes in rows(tmp_path / "one.db", "SELECT scores, notes FROM results"):
        assert "correct" not in json.loads(scores)
        assert json.loads(notes) == ["no correct: the judge's reply has none of the grades C, P, I"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (TimeoutError("too slow"), "TimeoutError"),
        (ConnectionResetError("gone"), "ConnectionResetError"),
        (3, "ModelError"),
    ],
)
def test_a_judge_that_fails_costs_those_answers_alone(said, error, tmp_path):
    down = [True]

    def judge(text):
        if not down or "number 1" in text:
            return "GRADE: C"
        if isinstance(said, Exception):
            raise said
        return said

    reader, judging = RecordingModel(), RecordingModel(judge)
    models = {"m": ModelSpec(reader, "m"), "judge": ModelSpec(judging, "judge")}
    given = experiment(models=models, grid={"k": 2, "model": "m"}, **JUDGED)
    report = run(given, tmp_path / "one.db")
    assert (report.outcome, report.answered, report.failed) == ("complete", 3, {error: 3})
    failed = rows(tmp_path / "one.db", "SELECT message FROM answers WHERE status = 'failed'")
    assert all("the judge 'correct' failed" in message for (message,) in failed)
    assert rows(tmp_path / "one.db", "SELECT count(*), error FROM failed_calls") == [(3, error)]
    down.clear()
    assert run(given, tmp_path / "one.db", retry_failed=True).failed == {}
    assert (len(reader.calls), len(judging.calls)) == (6, 9)
    assert [json.loads(found)["correct"] for *_, found in answers(tmp_path / "one.db")] == [1.0] * 6


def asking(name, **options):
    return judge_metric(name, Judge(model="judge", **options), "")


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("GRADE: C", 1.0),
        ("It says GRADE: C itself.\ngrade: p", 0.5),
        ("**GRADE: I**", 0.0),
        ("GRADE: **C**", 1.0),
        ("GRADE: C\nGRADE: and one of them", 1.0),
        ("<think>GRADE: P</think>GRADE: C", 1.0),
    ],
)
def test_the_last_grade_counts(reply, score):
    assert asking("correct").read(reply) == score


@pytest.mark.parametrize("reply", ["", "C", "<think>GRADE: C", "GRADE:", "GRADE: D", "GRADE: " + "* " * 50_000])
def test_other_replies_have_no_grade(reply):
    with pytest.raises(OptionError, match="has none of the grades C, P, I"):
        asking("correct").read(reply)


def test_a_judge_is_asked_where_its_prompt_can_be_filled():
    question = Question(id="one", text="Who?", documents=("text",))
    given = ScoredAnswer(question=question, method="closed_book", text="Nobody {answers}")
    kind = asking("kind", prompt="{question} {answer}")
    prompt = kind.ask(given)
    assert prompt is not None
    assert prompt.text.startswith("Who? Nobody {answers}\n\nGive your reason in one sentence.")
    assert prompt.text.endswith("one of C, P, I.")
    assert asking("faithful", prompt="{context} {answer}").ask(given) is None
    assert (kind.applies(given), asking("correct").applies(given)) == (True, False)


def refusal(**options):
    models = {"m": ModelSpec(RecordingModel(), "m")}
    with pytest.raises((ExperimentError, PromptError)) as refused:
        experiment(**{"models": models, "metrics": ["token_f1", "correct"], "grid": {"k": 2, "model": "m"}, **options})
    return str(refused.value)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        ({"model": "nobody"}, "unknown model of the judge 'correct' 'nobody'; expected one of m"),
        ({}, "judges.correct.model is missing"),
        ({"model": "m", "prompt": "Right?"}, "judges.correct.prompt: it must contain {answer}"),
        ({"model": "m", "prompt": "{answer} {gold}"}, "no fields other than {question}"),
        ({"model": "m", "prompt": "{answer.__class__}"}, "a field of a prompt must be a plain name"),
        ({"model": "m", "grades": {"very good": 1}}, "grades must be distinct single words"),
        ({"model": "m", "grades": {"C": "1"}}, "judges.correct.grades.C must be a number >= 0"),
    ],
)
def test_a_wrong_judge_is_refused(judge, words):
    assert words in refusal(judges={"correct": judge})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"judges": {"correct": {"model": "m"}, "other": {"model": "m"}}}, "'other' is not among the metrics"),
        ({"judges": {"token_f1": {"model": "m"}}, "metrics": ["token_f1"]}, "use a different name for the judge"),
        ({"judges": {}}, "unknown metric 'correct'"),
        ({"judges": {"order": {"model": "m"}}, "metrics": ["order"]}, "a metric cannot be named 'order'"),
    ],
)
def test_judges_and_metrics_that_do_not_go_together_are_refused(options, words):
    assert words in refusal(**options)
