"""Measuring cells: what is measured, apart from what, and what is left when it ends in the middle."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psutil")

from oprag.compare.cores import usable_cores
from oprag.compare.measure.measure import measure_cells
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.report import RunReport
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, MissingExtraError, OptionError
from tests.compare.helpers import RecordingModel, Words, rows, text_of
from tests.compare.measurable import MODULE, TWO, Broken, measurable, noted, slow_store
from tests.compare.measure.working import gone
from tests.helpers import WORDS

pytestmark = pytest.mark.process

MB = 1_000_000


def phases(path, columns="seconds"):
    """The values of each phase, of all attempts."""
    found: dict[str, list[Any]] = {}
    for phase, *values in rows(path, f"SELECT phase, {columns} FROM measurements ORDER BY id"):
        found.setdefault(phase, []).append(values[0] if len(values) == 1 else tuple(values))
    return found


def calls_made(path):
    """The calls that the file tells of: those whose reply is kept, and the others."""
    ((kept, others),) = rows(
        path, "SELECT (SELECT count(*) FROM replies), (SELECT coalesce(sum(calls), 0) FROM measured_calls)"
    )
    return kept + others


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def test_cells_are_measured_one_at_a_time_in_fresh_processes(path, log):
    grid = {"order": ["source", "rank"], "method": ["stuff", "closed_book"]}
    told: list[RunReport] = []
    report = measure_cells(
        measurable(grid, asked={"log": str(log)}, questions=2), path, warmup=2, repeats=3, on_progress=told.append
    )
    assert report.complete, text_of(report)
    assert (report.outcome, report.total, report.answered, report.failed, report.remaining) == ("complete", 6, 6, {}, 0)
    calls = noted(log, "call")
    by_process = Counter(call["pid"] for call in calls)
    # Two questions three times, and the first one twice before.
    assert list(by_process.values()) == [8, 8, 8]
    assert [call["pid"] for call in calls] == sorted((call["pid"] for call in calls), key=list(by_process).index)
    assert os.getpid() not in by_process
    assert {call["beside"] for call in calls} == {0}
    assert all(gone(pid, 1) for pid in by_process)
    assert report.spent.calls == 24
    assert calls_made(path) == 24
    assert [(now.done, now.total, now.failed, now.running, now.outcome) for now in told] == [
        (2, 6, {}, 0, ""),
        (4, 6, {}, 0, ""),
        (6, 6, {}, 0, ""),
    ]
    assert [now.spent.calls for now in told] == [8, 16, 24]
    assert rows(path, "SELECT outcome FROM runs") == [("complete",)]


def test_nothing_is_remembered_from_one_attempt_to_the_next(path, log):
    grid = {"similarity_threshold": [-1.0], "search": ["dense", "hybrid"]}
    small = measurable(grid, asked={"log": str(log)}, embeds={"log": str(log)}, documents=2)
    # A run before it fills the file with all that could be reused.
    assert run(small, path).complete
    log.unlink()
    assert measure_cells(small, path, warmup=1, repeats=2).complete
    calls, questions, documents = (noted(log, kind) for kind in ("call", "questions", "documents"))
    for pid in {call["pid"] for call in calls}:
        asked = [call["text"] for call in calls if call["pid"] == pid]
        assert list(Counter(asked).values()) == [3, 2]
        # Making an index asks for its first hit once.
        embedded = Counter(text for line in questions if line["pid"] == pid for text in line["texts"])
        assert sorted(embedded.values()) == [2, 2, 3]
        # Both documents, and what loads the embedder.
        assert [len(line["texts"]) > 1 for line in documents if line["pid"] == pid] == [False, True, True]


def test_a_slow_model_is_slow_in_generation(path):
    measure_cells(measurable({}, asked={"seconds": 0.5}), path, repeats=2)
    found = phases(path)
    assert [len(found[phase]) for phase in ("indexing", "retrieval", "generation")] == [1, 2, 2]
    assert min(found["generation"]) >= 0.5
    assert max(found["retrieval"]) < min(found["generation"])
    assert all(percent < 40 for percent in phases(path, "cpu_percent")["generation"])


def test_a_slow_question_is_slow_in_retrieval_and_slow_documents_in_indexing(path):
    measure_cells(measurable({}, embeds={"question_seconds": 0.5, "document_seconds": 1.0}), path, repeats=2)
    found = phases(path)
    assert min(found["retrieval"]) >= 0.5
    assert max(found["generation"]) < min(found["retrieval"])
    (indexing,) = found["indexing"]
    # An index is tried with one question.
    assert indexing >= 1.5
    assert max(found["retrieval"]) < indexing


def test_a_slow_store_is_slow_in_retrieval(path):
    small = measurable({"store": "slow"}, stores={"slow": slow_store})
    measure_cells(small, path, repeats=1)
    found = phases(path)
    assert min(found["retrieval"]) >= 0.5
    assert max(found["generation"]) < min(found["retrieval"])


def test_loading_the_embedder_is_no_part_of_an_index_unless_nothing_is_warmed_up(tmp_path, log):
    for warmup, lines in ((0, 1), (1, 2)):
        small = measurable({}, embeds={"log": str(log)})
        measure_cells(small, tmp_path / f"{warmup}.db", warmup=warmup, repeats=1)
        # The scores are made in this process, from an index of its own.
        assert len([line for line in noted(log, "documents") if line["pid"] != os.getpid()]) == lines
        log.unlink()


def test_processor_time_is_a_share_of_all_cores(path):
    measure_cells(measurable({}, asked={"cpu_seconds": 0.5}), path, warmup=1, repeats=3)
    percents = [percent * usable_cores() for percent in phases(path, "cpu_percent")["generation"]]
    # One core, as far as other programs let it.
    assert max(percents) <= 115
    used = [seconds * percent / 100 for seconds, percent in zip(phases(path)["generation"], percents, strict=True)]
    assert min(used) >= 0.48


def test_memory_that_a_model_fills_is_in_generation_alone(path):
    measure_cells(measurable({}, asked={"memory": 200 * MB}), path, warmup=1, repeats=2)
    found = phases(path, "peak_memory_bytes, memory_growth_bytes")
    for (retrieval, grown), (generation, more) in zip(found["retrieval"], found["generation"], strict=True):
        assert grown < 20 * MB
        assert 180 * MB < more < 260 * MB
        assert generation - retrieval > 150 * MB
        assert retrieval > 20 * MB


def test_a_cell_has_the_phases_that_it_has(path):
    grid = {"method": ["context_only", "closed_book", "long_context"]}
    assert measure_cells(measurable(grid), path, repeats=2).complete
    found = rows(
        path,
        "SELECT method, group_concat(phase) FROM (SELECT DISTINCT method, phase FROM measurements JOIN cells "
        "ON cells.id = cell ORDER BY 1, 2) GROUP BY method",
    )
    assert dict(found) == {
        "closed_book": "generation",
        "context_only": "indexing,retrieval",
        "long_context": "generation,indexing,retrieval",
    }


def test_columns_are_empty_where_nothing_was_measured(path):
    methods = ["stuff", "closed_book", "context_only"]
    assert run(measurable({"method": methods}), path).complete
    columns = [
        f"{phase}_{column}"
        for phase in ("retrieval", "generation")
        for column in ("seconds", "cpu_percent", "peak_memory_bytes")
    ]
    select = f"SELECT {', '.join(columns)} FROM results WHERE experiment = 'small' AND method = ?"
    assert [rows(path, select, method) for method in methods] == [[(None,) * 6]] * 3
    # Another experiment measures some of the same cells.
    measure_cells(measurable({"method": methods[:2]}, name="measured"), path, warmup=0, repeats=2)
    empty = [[value is None for value in rows(path, select, method)[0]] for method in methods]
    assert empty == [[False] * 6, [True] * 3 + [False] * 3, [True] * 6]
    ((mean,),) = rows(path, "SELECT DISTINCT generation_seconds FROM results WHERE method = 'stuff'")
    assert mean == pytest.approx(sum(phases(path)["generation"][:2]) / 2)


def test_what_was_measured_is_not_measured_again(path, log):
    small = measurable(TWO, asked={"log": str(log)}, questions=2)
    assert measure_cells(small, path, warmup=1, repeats=1).complete
    before = rows(path, "SELECT * FROM measurements")
    log.unlink()
    again = measure_cells(small, path, warmup=1, repeats=1)
    assert again.complete
    assert again.spent.calls == 6
    assert not noted(log, "call")
    assert rows(path, "SELECT * FROM measurements") == before
    # More of the same: the attempts that are missing, with their warm-up.
    more = measure_cells(small, path, warmup=1, repeats=3)
    assert more.complete
    assert len(noted(log, "call")) == 2 * (1 + 2 * 2)
    assert rows(path, "SELECT * FROM measurements WHERE attempt = 1") == before
    assert rows(path, "SELECT attempt, count(*) FROM measurements WHERE phase <> 'indexing' GROUP BY 1") == [
        (1, 8),
        (2, 8),
        (3, 8),
    ]
    # The index was measured once, though it was made three times.
    assert len(phases(path)["indexing"]) == 2


def test_a_failing_call_costs_its_question_alone(path, log):
    # No document asks a question.
    asked = {"log": str(log), "fails_on": f"{WORDS[0]} number 0?"}
    small = measurable({}, asked=asked, questions=3)
    told: list[RunReport] = []
    report = measure_cells(small, path, warmup=1, repeats=2, on_progress=told.append)
    assert (report.outcome, report.answered, report.failed, report.remaining) == (
        "complete",
        2,
        {"ConnectionResetError": 1},
        0,
    )
    assert not report.complete
    assert (told[-1].done, sum(told[-1].failed.values())) == (3, 1)
    # Its warm-up failed, so the next question was warmed up.
    assert report.spent.calls == 1 + 3 + 2 == len(noted(log, "call"))
    ((error, message, question),) = rows(
        path,
        "SELECT error, message, questions.name FROM failed_measurements JOIN questions "
        "ON questions.id = failed_measurements.question",
    )
    assert (error, question) == ("ConnectionResetError", "0-0")
    assert "the line is dead" in message
    assert len(phases(path)["generation"]) == 4
    assert min(phases(path)["generation"]) > 0
    # One document has one index, made for the question that failed.
    assert len(phases(path)["indexing"]) == 1
    Path(f"{log}.mended").touch()
    assert measure_cells(small, path, warmup=1, repeats=2).complete
    assert len(phases(path)["generation"]) == 6
    assert len(phases(path)["indexing"]) == 1


def test_an_embedder_that_is_not_there_costs_its_questions(path):
    broken = EmbedderSpec(Broken("broken words"), "broken")
    report = measure_cells(measurable(TWO, embedders={"words": broken}, questions=2), path)
    assert (report.outcome, report.failed) == ("complete", {"ConnectionRefusedError": 4})
    assert rows(path, "SELECT count(*) FROM measurements") == [(0,)]


def test_a_model_that_is_gone_ends_it(path, log):
    asked = {"log": str(log), "fails_on": "keeper"}
    grid = {"order": ["source", "rank", "reverse_rank"]}
    report = measure_cells(measurable(grid, asked=asked, questions=2, give_up_after=3), path, warmup=0)
    assert report.outcome == "the last 3 calls failed, the last one with ConnectionResetError: the line is dead"
    assert (sum(report.failed.values()), report.remaining) == (3, 3)
    assert len(noted(log, "call")) == 3


@pytest.mark.parametrize(
    ("limits", "least", "most"),
    [({"calls": 5}, 5, 5), ({"tokens": 1_700}, 2, 7), ({"money": 0.00055}, 2, 5), ({"calls": 0}, 0, 0)],
)
def test_limits_hold_over_runs_and_measuring(limits, least, most, path, log):
    asked = {"log": str(log), "tokens": 100}
    prices = {"m": {"input": 1.0, "output": 0.0}}
    small = measurable(TWO, asked=asked, questions=2, limits=limits, prices=prices)
    report = measure_cells(small, path, warmup=0, repeats=2)
    made = len(noted(log, "call"))
    assert report.spent.calls == made
    assert least <= made <= most
    (name, limit) = next(iter(limits.items()))
    assert report.outcome.startswith(f"the limit of {limit:,} {name} is reached: ")
    assert report.remaining > 0
    assert not report.failed
    assert getattr(report.spent, name) <= limit
    # A second start makes no more, nor does a run that measures nothing.
    assert measure_cells(small, path, warmup=0, repeats=2).spent == report.spent
    assert run(small, path).spent == report.spent
    assert len(noted(log, "call")) == made
    # What was measured by then stays.
    assert len(phases(path).get("generation", [])) == made


def test_calls_of_earlier_runs_count(path, log):
    small = measurable(TWO, asked={"log": str(log)}, questions=2, limits={"calls": 6})
    assert run(small, path).spent.calls == 4
    report = measure_cells(small, path, warmup=0, repeats=1)
    assert report.spent.calls == 6
    assert "6 spent" in report.outcome
    assert report.remaining == 2


def test_replies_without_tokens_are_estimated_for_the_limit(path):
    report = measure_cells(measurable({}, limits={"tokens": 100_000}), path, warmup=0, repeats=1)
    assert report.complete
    assert 20 < report.spent.tokens < 2_000


def test_calls_of_one_question_are_made_side_by_side(path):
    grid = {"method": "map_reduce", "passage_tokens": 20, "k": 4}
    # Made one after the other, they would wait for each other and fail.
    report = measure_cells(measurable(grid, asked={"together": 4}, max_concurrency=8), path, warmup=1, repeats=1)
    assert report.complete
    calls = calls_made(path)
    assert calls >= 2 * 4


def no_process(*_, **__):
    raise AssertionError("a process was started")


def test_what_cannot_be_sent_is_refused_before_anything_is_begun(path, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", no_process)
    with pytest.raises(
        ExperimentError, match=r"the model 'm' cannot be sent to another process: .*; use one that can be pickled"
    ):
        measure_cells(measurable({}, models={"m": ModelSpec(RecordingModel(), "recording")}), path)
    holds_a_lock = Words()
    holds_a_lock.lock = __import__("threading").Lock()  # type: ignore[attr-defined]
    with pytest.raises(ExperimentError, match="the embedder 'words' cannot be sent to another process"):
        measure_cells(measurable({}, embedders={"words": EmbedderSpec(holds_a_lock, "w")}), path)
    assert not path.exists()


def test_a_model_of_the_program_itself_is_refused(path):
    code = f"""
import sys
from oprag.compare.measure.measure import measure_cells
from oprag.compare.providers.model import ModelSpec
from tests.compare.measurable import measurable
def own(prompt):
    return "yes"
try:
    measure_cells(measurable({{}}, models={{"m": ModelSpec(own, "own")}}), {str(path)!r})
except ValueError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith(
        "the model 'm' cannot be sent to another process: own is defined in the main program"
    )
    assert not path.exists()


def test_a_process_that_dies_costs_its_cell_alone(path, log):
    asked = {"log": str(log), "dies_on": "closed"}
    # The prompt of closed book alone begins with the question.
    asked["dies_on"] = "Question: Who is the keeper"
    grid = {"method": ["closed_book", "stuff"]}
    small = measurable(grid, asked=asked, questions=2, prompts={"answer": "{context} {question} {instruction}"})
    told: list[RunReport] = []
    report = measure_cells(small, path, warmup=0, repeats=1, on_progress=told.append)
    assert (report.outcome, report.answered, report.failed, report.remaining) == (
        "complete",
        2,
        {"MeasurementError": 2},
        0,
    )
    assert [(now.done, now.failed) for now in told] == [(2, {"MeasurementError": 2}), (4, {"MeasurementError": 2})]
    found = rows(path, "SELECT method, error, message FROM failed_measurements JOIN cells ON cells.id = cell")
    assert len(found) == 2
    for method, error, message in found:
        assert (method, error) == ("closed_book", "MeasurementError")
        assert message.startswith("the process of measure_cell exited with status 7 before it returned")
        assert "the model has a bad day" in message
    Path(f"{log}.mended").touch()
    again = measure_cells(small, path, warmup=0, repeats=1)
    assert again.complete
    assert rows(path, "SELECT method, count(*) FROM measurements JOIN cells ON cells.id = cell GROUP BY 1") == [
        ("closed_book", 2),
        ("stuff", 5),
    ]


def test_processes_that_keep_dying_end_it(path):
    grid = {"order": ["source", "rank", "reverse_rank"]}
    report = measure_cells(measurable(grid, asked={"dies_on": "keeper"}, give_up_after=2), path)
    assert report.outcome.startswith("the last 2 processes died; the last error: the process of measure_cell exited")
    assert (report.failed, report.remaining) == ({"MeasurementError": 2}, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_may_be_interrupted_or_killed_at_any_time(number, path, log):
    command = [sys.executable, "-m", MODULE, str(path), str(log), "0.05", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # The second question of the first cell hangs in its second attempt.
        for _ in range(600):
            if len(noted(log, "call")) == 4:
                break
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        process.send_signal(number)
        output, errors = process.communicate(timeout=120)
    assert all(gone(call["pid"]) for call in noted(log, "call"))
    if number == signal.SIGINT:
        assert (process.returncode, output, errors) == (0, "interrupted", "")
    else:
        assert process.returncode == -number
    (outcome,) = rows(path, "SELECT outcome FROM runs")[0]
    assert outcome == ("interrupted" if number == signal.SIGINT else None)
    # The question that was done is there, with what it spent.
    done = "SELECT DISTINCT name, attempt, phase FROM measurements JOIN questions AS q ON q.id = measurements.question"
    assert set(rows(path, done)) == {
        ("0-0", 1, "indexing"),
        ("0-0", 1, "retrieval"),
        ("0-0", 1, "generation"),
        ("0-0", 2, "retrieval"),
        ("0-0", 2, "generation"),
    }
    assert calls_made(path) == 2
    Path(f"{log}.mended").touch()
    small = measurable(TWO, asked={"log": str(log), "seconds": 0.05, "hangs_after": 3}, questions=2)
    report = measure_cells(small, path, warmup=0, repeats=2)
    assert report.complete
    assert len(noted(log, "call")) == 4 + 2 + 4
    assert Counter(row[2] for row in rows(path, done)) == {"indexing": 1, "retrieval": 4, "generation": 4}
    assert {phase: len(values) for phase, values in phases(path).items()} == {
        "indexing": 2,
        "retrieval": 8,
        "generation": 8,
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [({"warmup": -1}, "warmup must be an integer >= 0"), ({"repeats": 0}, "repeats must be an integer")],
)
def test_numbers_that_cannot_be(options, words, path):
    with pytest.raises(OptionError, match=words):
        measure_cells(measurable({}), path, **options)
    assert not path.exists()


def test_without_psutil_nothing_is_begun(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oprag\[compare\]'"):
        measure_cells(measurable({}), path)
    assert not path.exists()


@pytest.mark.parametrize("method", ["stuff", "refine", "step_down", "context_only"])
def test_measured_answers_are_kept_with_their_scores(method, tmp_path, path, log):
    grid = {"method": method, "order": ["source", "rank"]}
    small = measurable(grid, asked={"log": str(log)}, questions=2, metrics=["token_f1", "inverted_pairs"])
    assert run(small, tmp_path / "plain.db").complete
    log.unlink(missing_ok=True)
    measured = measure_cells(small, path, warmup=1, repeats=2)
    assert measured.complete
    made = len(noted(log, "call"))
    assert measured.spent.calls == made

    def answers(file):
        scores = rows(
            file,
            "SELECT cell, question, metric, value FROM scores JOIN answers ON answers.id = answer ORDER BY 1, 2, 3",
        )
        return rows(file, "SELECT cell, question, status, text, notes, calls FROM answers ORDER BY 1, 2"), scores

    def replies(file):
        return rows(file, "SELECT key, text, finish_reason FROM replies ORDER BY 1")

    assert answers(path) == answers(tmp_path / "plain.db")
    assert replies(path) == replies(tmp_path / "plain.db")
    # Nothing is asked again, and each call counts once.
    report = run(small, path)
    assert (report.complete, report.spent) == (True, measured.spent)
    assert len(noted(log, "call")) == made


def test_answers_that_are_there_stay_when_they_are_measured(path):
    small = measurable(TWO, questions=2)
    assert run(small, path).complete
    before = [rows(path, f"SELECT * FROM {table}") for table in ("answers", "scores", "replies")]
    assert measure_cells(small, path, warmup=0, repeats=1).complete
    assert [rows(path, f"SELECT * FROM {table}") for table in ("answers", "scores", "replies")] == before


def test_answers_of_a_cell_whose_process_was_interrupted_are_made_by_the_next_start(path, log, monkeypatch):
    small = measurable(TWO, asked={"log": str(log)}, questions=2)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("oprag.compare.running.recorder.Recorder.records", interrupted)
        assert measure_cells(small, path, warmup=0, repeats=1).outcome == "interrupted"
    assert (len(noted(log, "call")), rows(path, "SELECT * FROM answers")) == (2, [])
    assert measure_cells(small, path, warmup=0, repeats=1).complete
    assert rows(path, "SELECT count(*) FROM answers") == [(4,)]
    assert len(noted(log, "call")) == 4


def test_a_model_that_never_says_the_same_twice_loses_nothing_that_it_was_asked(path):
    small = measurable({"method": "refine", "order": ["source", "rank"]}, asked={"varies": True}, questions=2)
    report = measure_cells(small, path, warmup=1, repeats=2)
    assert report.complete
    # Each answer that is there is made of replies that are there.
    after = run(small, path)
    assert after.complete
    assert after.broken == 0
