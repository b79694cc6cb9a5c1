"""Answers that are measured: one at a time, without what was found or said before."""

import mmap
import sqlite3
import time
from contextlib import closing

import pytest

from oprag.compare import compare, run
from oprag.compare.meter import usable_cores
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.errors import MissingExtraError
from tests.compare.helpers import METHODS, RecordingModel, Words, experiment, keepers, reply_to, rows
from tests.helpers import WORDS

MEASURED = 'SELECT method, "order", question_id, seconds, cpu_seconds, peak_memory_mib FROM results ORDER BY 1, 2, 3'
GRID = {"k": 4, "chunk_size": 32, "order": ["source", "rank"]}


@pytest.fixture(autouse=True)
def _with_psutil():
    pytest.importorskip("psutil")


class Slow(Words):
    """Words that take their time."""

    def __init__(self, documents=0.0):
        super().__init__()
        self._seconds = documents

    def embed_questions(self, texts):
        time.sleep(0.05)
        return super().embed_questions(texts)

    def embed_documents(self, texts):
        time.sleep(self._seconds)
        return super().embed_documents(texts)


def slow(embedder=None, **options):
    """An experiment of slow searches, without a model."""
    embedder = embedder or Slow()
    grid = {"k": [2, 4], "chunk_size": 32, "method": "context_only"}
    return experiment(embedders={"words": EmbedderSpec(embedder, "words")}, **{"grid": grid, **options})


def test_measuring_needs_an_extra(tmp_path, monkeypatch):
    monkeypatch.setattr("oprag.compare.running.run.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"oprag\[compare\]"):
        run(slow(), tmp_path / "results.db", measure=True)
    assert not (tmp_path / "results.db").exists()


def test_each_answer_has_what_it_took(tmp_path):
    def reply(text):
        with mmap.mmap(-1, 30 * 2**20) as memory:
            for place in range(0, len(memory) if "number 0" in text else 1, mmap.PAGESIZE):
                memory[place] = 1
            time.sleep(0.05)
        return reply_to(text)

    path = tmp_path / "results.db"
    results = compare(experiment(RecordingModel(reply), grid={"k": 4, "chunk_size": 32}), path, measure=True)
    peaks = {question: peak for *_, question, seconds, cpu, peak in rows(path, MEASURED) if 0 < cpu < seconds >= 0.05}
    assert len(peaks) == 6
    # Scoring the first answer loads modules.
    assert min(peaks["0-1"], peaks["0-2"]) - max(peaks[name] for name in ("1-0", "1-1", "1-2")) > 25
    (setting,) = results.settings
    assert setting.measured == setting.answered == 6
    assert results.matrix.cores == (f"{usable_cores():g}",)


def test_one_question_and_one_call_at_a_time(tmp_path):
    model = RecordingModel(seconds=0.01, fails=lambda text, before: f"{WORDS[1]} number 1?" in text)
    given = experiment(model, grid=GRID | {"method": METHODS, "passage_tokens": 60}, data=keepers(2, 2))
    report = run(given, tmp_path / "measured.db", measure=True)
    assert report.failed
    assert report.spent.calls == len(model.calls)
    assert model.most_at_once == 1
    # A run of many at a time differs in nothing but the measurements.
    run(given, tmp_path / "results.db")
    assert model.most_at_once > 1
    answers = 'SELECT method, "order", question_id, status, answer, notes, scores FROM results ORDER BY 1, 2, 3'
    assert rows(tmp_path / "measured.db", answers) == rows(tmp_path / "results.db", answers)
    measured = rows(tmp_path / "measured.db", "SELECT DISTINCT status FROM answers WHERE seconds IS NOT NULL")
    assert measured == [("answered",)]


def test_an_answer_with_a_stored_reply_has_no_measurement(tmp_path):
    path = tmp_path / "results.db"
    model = RecordingModel(seconds=0.02)
    run(experiment(model, grid=GRID | {"order": "source"}), path)
    made = len(model.calls)
    # One chunk is in one order: what both orders send is asked once.
    grid = [GRID, {"k": 1, "chunk_size": 32, "order": ["source", "rank"]}]
    report = run(experiment(model, grid=grid), path, measure=True)
    assert report.complete
    assert len(model.calls) == len(set(model.calls)) == report.spent.calls > made
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(
            "SELECT answers.run, replies.run < answers.run OR lag(replies.key) OVER (PARTITION BY replies.key ORDER BY "
            "answers.rowid) IS NOT NULL, answers.seconds IS NOT NULL, answers.seconds FROM answers, "
            "json_each(answers.replies) AS call JOIN replies ON replies.key = call.value ->> 1"
        ).fetchall()
    for number, stored, measured, seconds in found:
        assert measured == (number == 2 and not stored)
        assert not measured or seconds >= 0.02
    assert {(number, stored) for number, stored, *_ in found} == {(1, 0), (2, 0), (2, 1)}


def test_each_answer_is_written_before_the_next_question(tmp_path):
    path = tmp_path / "results.db"
    written = []

    def reply(text):
        written.extend(rows(path, "SELECT count(seconds) FROM answers"))
        return reply_to(text)

    assert run(experiment(RecordingModel(reply)), path, measure=True).complete
    assert written == [(number,) for number in range(6)]


def test_each_search_is_made_again_and_the_index_is_not_measured(tmp_path):
    path = tmp_path / "results.db"
    embedder = Slow()
    # What a run has found and embedded before is not read.
    run(slow(embedder, data=keepers(1, 2)), path)
    embedder.questions.clear()
    documents = len(embedder.documents)
    grid = {"k": [2, 4, 6], "chunk_size": 32, "method": "context_only", "order": ["source", "rank"]}
    run(slow(embedder, grid=grid, data=keepers(1, 2)), path, measure=True)
    asked = [text for text in embedder.questions if text.startswith("Who")]
    found = [row for row in rows(path, MEASURED) if row[3] is not None]
    assert len(asked) == len(found) == 5 * 2 - 2
    assert len(embedder.documents) == documents
    assert all(seconds >= 0.05 for *_, seconds, _, _ in found)


def test_a_new_index_is_not_measured(tmp_path):
    path = tmp_path / "results.db"
    run(slow(Slow(documents=1.0), data=keepers(1, 1)), path, measure=True)
    assert all(0.05 <= seconds < 1.0 for *_, seconds, _, _ in rows(path, MEASURED))


def test_judges_are_not_measured(tmp_path):
    path = tmp_path / "results.db"
    judge = RecordingModel(lambda text: "GRADE: C", seconds=1.0)
    models = {"reader": ModelSpec(RecordingModel(), "reader"), "judge": ModelSpec(judge, "judge")}
    judged = {"metrics": ["correct"], "judges": {"correct": {"model": "judge"}}}
    grid = {"k": 2, "chunk_size": 32, "model": "reader"}
    given = experiment(models=models, grid=grid, data=keepers(1, 1), **judged)
    assert run(given, path, measure=True).complete
    assert rows(path, "SELECT scores FROM answers") == [('{"correct":1.0}',)]
    assert all(seconds < 1.0 for *_, seconds, _, _ in rows(path, MEASURED))
