"""Sorting refused questions by a model: what it says is counted, and what nobody can read as well."""

from dataclasses import replace

import pytest

pytest.importorskip("jinja2")

from oprag.compare.html import write_report
from oprag.compare.html.refusals import KINDS, classify, opened_model
from oprag.compare.providers.model import ModelSpec
from oprag.errors import ExperimentError, OptionError
from tests.compare.helpers import RecordingModel, experiment, keepers, rows
from tests.compare.html.grids import full_experiment, ran, reader
from tests.compare.html.parsed import page_of


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        *((letter, name) for letter, name in KINDS.items()),
        ("c.", "long or complex"),
        ("**B**", "general"),
        ("Answer: D", "implicit"),
        ("A: multi-step", "multi-step"),
        ("A multi-step question", "multi-step"),
        ("(E) other", "other"),
        ("A question like this is general.", "unreadable"),
        ("Because it is implicit", "unreadable"),
        ("F", "unreadable"),
        ("", "unreadable"),
    ],
)
def test_a_letter_is_read_where_it_is_meant(reply, kind):
    assert classify(["Why?"], ModelSpec(lambda prompt: reply, "m").open()) == {kind: 1}


def test_a_failed_call_is_no_kind():
    model = RecordingModel(lambda prompt: "B", fails=lambda prompt, before: "second" in prompt)
    assert classify(["first", "second"], ModelSpec(model, "m", retries=0).open()) == {"general": 1, "call failed": 1}


def test_the_model_reads_the_question_as_it_is():
    model = RecordingModel(lambda prompt: "E")
    classify(["What {about} {question}?"], ModelSpec(model, "m").open())
    assert "Question: What {about} {question}?\n" in model.calls[0]


def test_each_refused_question_is_asked_once_and_the_counts_are_shown(tmp_path):
    path = ran(full_experiment(), tmp_path / "r.db")
    refused = rows(path, "SELECT DISTINCT question FROM answers WHERE route = 'long_context'")
    assert refused
    model = RecordingModel(lambda prompt: "D" if "number 0" in prompt else "who knows")
    page = page_of(write_report(path, tmp_path / "r.html", refusals=model))
    assert len(model.calls) == len(refused)
    counts = {kind: int(count) for kind, count, _ in page.table("self-route", "Refused questions")[1:]}
    assert set(counts) == {*KINDS.values(), "unreadable", "call failed"}
    assert counts["implicit"] + counts["unreadable"] == len(refused)
    assert sum(counts.values()) == len(refused)
    assert rows(path, "SELECT count(*) FROM replies WHERE step = 'classify'") == [(0,)]


def test_without_a_model_nothing_is_sorted(tmp_path):
    path = ran(full_experiment(), tmp_path / "r.db")
    assert "refused" not in page_of(write_report(path, tmp_path / "r.html")).section("self-route").text


def test_no_model_is_refused_before_anything_else(tmp_path):
    assert opened_model(None) is None
    with pytest.raises(ExperimentError):
        opened_model(7)


def test_where_nothing_was_routed_there_is_nothing_to_sort(tmp_path):
    path = ran(experiment(grid={"method": "context_only", "k": 2}), tmp_path / "r.db")
    model = RecordingModel(lambda prompt: "A")
    with pytest.raises(OptionError, match="no answers of self_route"):
        write_report(path, tmp_path / "r.html", refusals=model)
    assert model.calls == []


def test_experiments_that_share_cells_have_their_own_questions(tmp_path):
    data = keepers(documents=1, questions=6)
    path = tmp_path / "r.db"
    grid = {"method": "self_route", "k": 1, "chunk_size": 16}
    parts = {"first": data.questions[:2], "second": data.questions[2:]}
    for name, questions in parts.items():
        # Whatever is asked, the chunks are not enough.
        model = RecordingModel(lambda text: "unanswerable" if "unanswerable" in text else reader(text))
        ran(experiment(model, data=replace(data, questions=questions), grid=grid, name=name), path)
    assert rows(path, "SELECT count(*) FROM cells") == [(1,)]
    for name, questions in parts.items():
        model = RecordingModel(lambda prompt: "D")
        page = page_of(write_report(path, tmp_path / "r.html", experiment=name, refusals=model))
        assert len(model.calls) == len(questions)
        (_, row) = page.table("self-route", "What Self-Route scored")
        assert row[3] == str(len(questions))
