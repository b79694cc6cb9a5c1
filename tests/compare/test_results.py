"""Results in Python, of real runs: rows, columns, files, and what they are asked."""

import csv
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from statistics import fmean, median, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare import Results, compare
from oprag.compare.analysis.summary import MEASURED
from oprag.compare.metrics.registry import DEFAULT_METRICS
from oprag.compare.results import write_csv
from oprag.errors import MissingExtraError, OptionError, ResultsFileError
from oprag.methods.prompts import TextTemplate
from tests.compare.analysis.matrices import frame, made
from tests.compare.folders import experiment_of, model, write_experiment
from tests.compare.helpers import RecordingModel, experiment, keepers

GRID = 'method = ["stuff", "closed_book"]\norder = ["source", "random"]\nseed = [1, 2]\nk = [2, 4]'


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Results:
    folder = tmp_path_factory.mktemp("frame")
    path = write_experiment(
        folder, GRID, model(failing="did the comet"), metrics='["rouge_l", "token_f1", "inverted_pairs"]'
    )
    return compare(experiment_of(path), path.with_suffix(".db"))


def column(results, name) -> list[Any]:
    return [row[name] for row in results.rows]


def read_csv(path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_is_a_setting_with_all_that_it_scored_and_took(ran):
    assert ran.columns[:3] == ("method", "order", "k")
    assert set(ran.columns) >= {"data", "embedder", "model", "chunk_size"}
    assert all(tuple(row) == ran.columns for row in ran.rows)
    source, control = ran.rows[0], ran.rows[-1]
    assert (source["method"], source["order"], source["k"]) == ("stuff", "source", 2)
    assert (control["method"], control["order"], control["k"]) == ("closed_book", None, None)
    assert (source["asked"], source["answered"], source["failed"], source["remaining"], source["cells"]) == (
        4,
        3,
        1,
        0,
        1,
    )
    summary = ran.settings[0].scores["token_f1"]
    assert [source[f"token_f1{part}"] for part in ("", "_low", "_high", "_median", "_sd", "_n")] == [
        summary.mean,
        summary.low,
        summary.high,
        summary.median,
        summary.standard_deviation,
        3,
    ]
    assert (control["inverted_pairs"], control["inverted_pairs_n"]) == (None, 0)
    assert source["tokens"] == source["input_tokens"] + source["output_tokens"]
    assert "seconds" not in ran.columns


def test_an_experiment_in_no_file_needs_a_path():
    with pytest.raises(OptionError, match="path is missing"):
        compare(experiment(None))


def test_answers_are_those_of_the_file(ran):
    rows = list(ran.answers())
    with closing(sqlite3.connect(ran.path)) as connection:
        connection.row_factory = sqlite3.Row
        kept = [dict(row) for row in connection.execute("SELECT * FROM results")]

    def place(row):
        return row["method"], row["order"], row["k"], row["seed"], row["question_id"]

    for row in kept:
        row.update({} if row["order"] == "random" else {"seed": None})
        row.update({"order": None, "k": None, "seed": None} if row["method"] == "closed_book" else {})
    by_place = {place(row): row for row in kept}
    assert len(by_place) == len(rows) == 28
    for row in rows:
        there = by_place[place(row)]
        assert {name: row[name] for name in ("status", "answer", "error", "message", "calls", "input_tokens")} == {
            name: there[name] for name in ("status", "answer", "error", "message", "calls", "input_tokens")
        }
        scores = {name: row[name] for name in ran.metrics if row[name] is not None}
        assert scores == pytest.approx(json.loads(there["scores"]))  # SQLite's JSON has 15 digits
        assert row["tokens"] == there["input_tokens"] + there["output_tokens"]


def test_frames_of_settings_and_answers(ran):
    pytest.importorskip("pandas")
    settings, answers = ran.to_pandas(), ran.to_pandas(answers=True)
    assert tuple(settings.columns) == ran.columns
    assert settings["token_f1"].tolist() == column(ran, "token_f1")
    assert settings["k"].dropna().tolist() == [2, 4, 2, 4]
    assert len(answers) == 28
    means = answers[answers.status == "answered"].groupby(["method", "order", "k"], dropna=False)["token_f1"].mean()
    # The mean over seeds and questions is that over questions of the means over seeds, since none lacks a seed.
    assert means["stuff", "random", 4] == pytest.approx(settings["token_f1"][3])


def test_the_metric_that_is_meant_is_the_first_of_the_experiment(ran):
    assert ran.metrics == ("rouge_l", "token_f1", "inverted_pairs")
    assert ran.metric == "rouge_l"
    assert ran.best().metric == "rouge_l"
    for only, message in (
        (made({"a": 1.0}, scored=False), "no metric for which higher is better has scores"),
        (made({"a": None}), "all answers failed: 1 × ModelError: down"),
    ):
        with pytest.raises(OptionError, match=message):
            frame(only).metric  # noqa: B018
    with pytest.raises(OptionError, match="how chunks are ordered"):
        ran.best("inverted_pairs")
    with pytest.raises(OptionError, match="no scores of 'answer_cosine'; metrics with scores: rouge_l"):
        ran.best("answer_cosine")


@pytest.mark.parametrize(
    ("method", "choices", "metric"),
    [
        ("stuff", (), "token_f1"),
        ("stuff", ("Nine", "Ten"), "choice_accuracy"),
        ("context_only", (), "evidence_coverage"),
    ],
)
def test_the_usual_metric_suits_the_questions(tmp_path, method, choices, metric):
    data = keepers(documents=1, questions=3)
    right = {"choices": choices, "answers": ("A",), "right_choice": 0} if choices else {}
    data = replace(data, questions=tuple(replace(one, **right) for one in data.questions))
    grid = {"method": method, "k": 2, "chunk_size": 32}
    run = compare(experiment(RecordingModel(), grid=grid, data=data, metrics=DEFAULT_METRICS), tmp_path / "r.db")
    assert run.metric == run.best().metric == metric


def test_an_experiment_that_nothing_was_asked_of_yet(tmp_path):
    described = experiment_of(write_experiment(tmp_path, 'method = "stuff"\nk = 2', model(), limits="{calls = 0}"))
    run = compare(described, tmp_path / "r.db")
    assert run.run is not None
    assert not run.run.complete
    assert (len(run.rows), run.rows[0]["answered"], run.rows[0]["remaining"], run.metrics) == (1, 0, 4, ())
    assert list(run.answers()) == []
    assert "4 not tried" in repr(run)
    run.to_csv(tmp_path / "a.csv", answers=True)
    assert read_csv(tmp_path / "a.csv") == []
    for ask in (run.best, run.deployed, run.curves):
        with pytest.raises(OptionError, match="has scores"):
            ask()


def test_some_settings_alone(ran):
    some = ran.where(order="random", k=[4])
    assert some.rows == [{name: row[name] for name in some.columns} for row in ran.rows if row["order"] == "random"][1:]
    assert len(list(some.answers())) == 8
    assert some.run is ran.run
    with pytest.raises(OptionError, match=r"no setting has order='sorce'; the values are \['source', 'random', None\]"):
        ran.where(order="sorce")
    with pytest.raises(OptionError, match=r"no setting has k=7; the values are"):
        ran.where(k=[4, 7])
    with pytest.raises(OptionError, match=r"no setting has all of \{'method': 'closed_book', 'k': 4\}"):
        ran.where(method="closed_book", k=4)
    # As the row says of what reads no context.
    assert [row["method"] for row in ran.where(k=None).rows] == ["closed_book"]
    assert [row["k"] for row in ran.where(k=[None, 4]).rows] == [4, 4, None]
    with pytest.raises(OptionError, match="unknown axis"):
        ran.where(ordr="source")
    with pytest.raises(OptionError, match="averaged"):
        ran.where(seed=1)


def test_answers_have_the_fields_of_their_questions(tmp_path):
    data = keepers(documents=1, questions=3)
    fields: list[Any] = [{"kind": "=1+1", "answer": "yes"}, {"kind": "b", "=cmd": 2}, {}]
    questions = [replace(one, about=about) for one, about in zip(data.questions, fields, strict=True)]
    grid = {"method": "context_only", "k": [1, 2], "chunk_size": 32}
    run = compare(experiment(grid=grid, data=replace(data, questions=tuple(questions))), tmp_path / "r.db")
    assert run.matrix.field_names == ("evidence_spans", "spread", "kind", "question_answer", "=cmd")
    rows = list(run.answers())
    assert [row["kind"] for row in rows] == ["=1+1", "b", None] * 2
    assert [row["=cmd"] for row in rows] == [None, 2, None] * 2
    assert {row["spread"] for row in rows} == {False}
    run.to_csv(tmp_path / "a.csv", answers=True)
    # A spreadsheet takes neither a field nor its name for a formula.
    assert [row["'=cmd"] for row in read_csv(tmp_path / "a.csv")] == ["", "2", ""] * 2
    assert [row["kind"] for row in read_csv(tmp_path / "a.csv")] == ["'=1+1", "b", ""] * 2


def test_what_was_measured_has_columns(tmp_path):
    pytest.importorskip("psutil")
    path = write_experiment(tmp_path, 'method = ["stuff", "closed_book"]\nk = 2', model(seconds=0.02))
    run = compare(experiment_of(path), tmp_path / "r.db", measure=True)
    answers = list(run.answers())
    for row in run.rows:
        ours = [one for one in answers if one["method"] == row["method"]]
        assert row["measured"] == len(ours) == 4
        for name in MEASURED:
            taken = [one[name] for one in ours]
            assert (row[name], row[f"{name}_median"]) == pytest.approx((fmean(taken), median(taken)))
            assert row[f"{name}_sd"] == pytest.approx(stdev(taken))
        assert row["seconds"] >= 0.02
        assert [one["cpu_percent"] for one in ours] == pytest.approx(
            [100 * one["cpu_seconds"] / one["seconds"] for one in ours]
        )
    for answers_too in (False, True, True):  # each in the place of a table of oprag
        run.to_csv(tmp_path / "t.csv", answers=answers_too)
    written = read_csv(tmp_path / "t.csv")
    assert [float(one["peak_memory_mib"]) for one in written] == [one["peak_memory_mib"] for one in answers]


# CSV and data frames


ROWS: list[dict[str, Any]] = [
    {
        "k": 8,
        "score": 0.1,
        "text": 'a "quoted", text;\r\nof two lines',
        "flag": True,
        "names": ["ä", "b"],
        "nothing": None,
    },
    {"k": None, "score": -1.5, "text": "", "flag": False, "names": [], "nothing": None},
]
FORMULAS = [
    "=1+1",
    "+1+cmd|' /C calc'!A1",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\u00a0=1",
    "＝1+1",
    "＋1",
    "－1",
    "＠x",
    '=HYPERLINK("http://example.org")',
    "- a list",
]


def csv_of(tmp_path, text) -> str:
    write_csv(tmp_path / "t.csv", [{"text": text}])
    return read_csv(tmp_path / "t.csv")[0]["text"]


def test_csv_has_what_was_given(tmp_path):
    write_csv(tmp_path / "t.csv", ROWS)
    first, second = read_csv(tmp_path / "t.csv")
    assert (first["k"], float(first["score"]), first["text"]) == ("8", 0.1, ROWS[0]["text"])
    assert json.loads(first["names"]) == ["ä", "b"]
    assert (first["flag"], second["k"], second["score"], second["nothing"]) == ("True", "", "-1.5", "")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula_of_a_spreadsheet(tmp_path, text):
    assert csv_of(tmp_path, text) == f"'{text}"


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e-4", "a=b", "x - y", "'=1", "", "1-2", "e+3"])
def test_other_text_and_numbers_stay_as_they_are(tmp_path, text):
    assert csv_of(tmp_path, text) == text


@given(st.text(max_size=20))
def test_any_text_comes_back(tmp_path_factory, text):
    # A hostile text can neither leave its cell nor its row, and is what it was but for the apostrophe.
    found = csv_of(tmp_path_factory.getbasetemp(), text)
    stored = text.encode(errors="replace").decode()
    assert found in (stored, f"'{stored}")
    assert not found.lstrip().startswith(("=", "@"))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old", encoding="utf-8")

    def rows():
        yield ROWS[0]
        raise ResultsFileError("the file is damaged")

    with pytest.raises(ResultsFileError):
        write_csv(path, rows())
    assert path.read_text(encoding="utf-8") == "old"
    write_csv(path, ROWS)
    assert len(read_csv(path)) == 2
    assert list(tmp_path.iterdir()) == [path]


def test_without_pandas_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"oprag\[analysis\]"):
        frame(made({"a": 0.5})).to_pandas()


def test_a_profile_has_the_prompts_of_the_experiment(tmp_path):
    prompts = {"answer": "Read {context}. {question}", "map": TextTemplate("{context} {question}", "A system.")}
    asked = experiment(RecordingModel(), prompts=prompts)
    compare(asked, tmp_path / "r.db")
    profile = Results.open(tmp_path / "r.db").deployed().profile()
    assert profile.method["prompts"] == {"answer": "Read {context}. {question}"}
    assert profile.about["prompts"] == "map, which cannot be stored in a profile; set prompts in addition"
    # Contexts alone were scored.
    contexts = experiment(grid={"method": "context_only", "k": 2}, prompts=prompts)
    assert "prompts" not in compare(contexts, tmp_path / "c.db").deployed("evidence_coverage").profile().method
