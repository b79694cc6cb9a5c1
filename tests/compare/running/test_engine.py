import random
import re
import threading

import pytest

from oprag.compare.db.records import Spent
from oprag.compare.providers.specs import EmbedderSpec
from oprag.compare.running.run import run
from oprag.errors import MissingExtraError
from oprag.methods.answer import Completion, Usage
from tests.compare.helpers import METHODS, RecordingModel, Words, experiment, keepers, reply_to, rows, text_of
from tests.meeting import Meeting

ALL = {"k": 4, "chunk_size": 32, "method": METHODS, "order": ["source", "rank"]}


@pytest.mark.parametrize("most", [1, 8, 64])
def test_calls_run_together_up_to_the_limit(most, tmp_path):
    data = keepers(documents=8, questions=6)
    # Were questions or cells answered one after the other, they would never meet.
    model = RecordingModel(meeting=Meeting(most))
    grid = {"k": 4, "chunk_size": 32, "repeat": [1, 2]}
    small = experiment(model, data=data, grid=grid, max_concurrency=most, metrics=["token_f1"])
    report = run(small, tmp_path / "results.db")
    assert report.complete
    assert len(model.calls) == 96
    assert model.most_at_once == most


def test_steps_of_one_question_run_together(tmp_path):
    data = keepers(documents=1, questions=1)
    model = RecordingModel(meeting=Meeting(8))
    grid = {"k": 12, "chunk_size": 16, "method": "map_reduce", "passage_tokens": 16}
    assert run(experiment(model, data=data, grid=grid, max_concurrency=64), tmp_path / "r.db").complete
    assert model.most_at_once == len(model.calls) - 1 >= 8


def test_failures_are_recorded_and_tried_again_on_request(tmp_path):
    path = tmp_path / "results.db"
    generator = random.Random(1)
    lock = threading.Lock()

    def fails(text, before):
        with lock:
            return generator.random() < 0.2

    model = RecordingModel(fails=fails)
    report = run(experiment(model, grid=ALL), path)
    assert report.outcome == "complete", text_of(report)
    assert report.answered + sum(report.failed.values()) == report.total
    assert report.remaining == 0
    assert set(report.failed) == {"ConnectionRefusedError"}
    failed = rows(path, "SELECT status, error, message, answer, scores FROM results WHERE status != 'answered'")
    assert len(failed) == sum(report.failed.values()) > 10
    for status, error, message, answer, scores in failed:
        assert (status, error, answer, scores) == ("failed", "ConnectionRefusedError", None, "{}")
        assert message.startswith("the model call '")
        assert "no reply for" in message
    calls = rows(path, "SELECT key, step, error, message FROM failed_calls")
    assert len(calls) + rows(path, "SELECT count(*) FROM replies")[0][0] == len(model.calls) == report.spent.calls
    assert {error for _, _, error, _ in calls} == {"ConnectionRefusedError"}

    # Without being asked to, nothing is tried again.
    quiet = RecordingModel()
    assert run(experiment(quiet, grid=ALL), path).failed == report.failed
    assert not quiet.calls

    whole = RecordingModel()
    complete = run(experiment(whole, grid=ALL), path, retry_failed=True)
    assert complete.complete
    undisturbed = RecordingModel()
    run(experiment(undisturbed, grid=ALL), tmp_path / "other.db")
    select = (
        'SELECT question_id, method, "order", status, answer, calls, input_tokens, scores FROM results ORDER BY 1, 2, 3'
    )
    assert rows(path, select) == rows(tmp_path / "other.db", select)
    assert set(whole.calls) <= set(undisturbed.calls)
    known = {key for (key,) in rows(path, "SELECT key FROM replies")}
    assert {key for key, *_ in calls} <= known


def test_numbers_and_reasons_of_any_kind_are_kept(tmp_path):
    """Clients give NumPy integers, floats and enumerations; what was written must hold at the next start."""
    import numpy as np

    usage = Usage(np.int64(7), 3.0, np.int32(0))  # type: ignore[arg-type]
    path = tmp_path / "results.db"
    model = RecordingModel(lambda text: Completion("yes", usage=usage, finish_reason=ValueError))  # type: ignore[arg-type]
    assert run(experiment(model), path).complete
    again = RecordingModel()
    assert run(experiment(again), path).complete
    assert not again.calls
    assert rows(path, "SELECT DISTINCT input_tokens, output_tokens, estimated FROM answers") == [(7, 3, 0)]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (None, "ModelError"),
        (Completion(text=None), "ModelError"),  # type: ignore[arg-type]
        (Completion("yes", usage=Usage("many", 1)), "ModelError"),  # type: ignore[arg-type]
        (Completion(error=TimeoutError("too slow"), usage=Usage(7, 1)), "TimeoutError"),
    ],
)
def test_what_is_no_reply_is_a_failed_call(reply, error, tmp_path):
    report = run(experiment(RecordingModel(lambda text: reply)), tmp_path / "results.db")
    assert report.failed == {error: 6}
    assert report.spent == Spent(6)
    assert rows(tmp_path / "results.db", "SELECT count(*), error FROM failed_calls") == [(6, error)]


def test_what_is_not_installed_ends_the_run_at_once(tmp_path):
    def needs_more(text):
        raise MissingExtraError("The model", "openai")

    with pytest.raises(MissingExtraError, match="openai"):
        run(experiment(needs_more, max_concurrency=1), tmp_path / "results.db")
    ((outcome,),) = rows(tmp_path / "results.db", "SELECT outcome FROM runs")
    assert "MissingExtraError" in outcome


def test_a_dead_server_ends_the_run(tmp_path):
    path = tmp_path / "results.db"
    data = keepers(documents=6, questions=8)
    dead = RecordingModel(fails=lambda text, before: True)
    report = run(experiment(dead, data=data, give_up_after=10, max_concurrency=4), path)
    assert report.outcome == (
        f"the last 10 calls failed, the last one with ConnectionRefusedError: {report.outcome.partition('Error: ')[2]}"
    )
    assert 10 <= len(dead.calls) < 10 + 4
    assert report.remaining >= 48 - 14
    # Those that were not tried are not failed ones.
    alive = RecordingModel()
    report = run(experiment(alive, data=data), path)
    assert report.remaining == 0
    assert report.answered >= 34
    assert run(experiment(alive, data=data), path, retry_failed=True).complete


class Unreachable(Words):
    def embed_documents(self, texts):
        self.documents += texts
        raise ConnectionError("no embedder at this address")


def test_an_embedder_that_is_not_there_ends_the_run(tmp_path):
    embedder = Unreachable()
    small = experiment(
        RecordingModel(),
        data=keepers(documents=6, questions=8),
        embedders={"words": EmbedderSpec(embedder, "words")},
        metrics=["token_f1"],
        give_up_after=5,
    )
    report = run(small, tmp_path / "results.db")
    assert "the last 5 searches failed, the last one with" in report.outcome
    assert "no embedder at this address" in report.outcome
    assert (sum(report.failed.values()), report.remaining) == (5, 43)
    back = experiment(RecordingModel(), data=keepers(documents=6, questions=8), metrics=["token_f1"])
    assert run(back, tmp_path / "results.db", retry_failed=True).complete


def test_searches_that_fail_between_others_end_nothing(tmp_path):
    class Half(Words):
        def embed_documents(self, texts):
            if re.search("number [1357] is", " ".join(texts)):
                raise ConnectionError("no embeddings of this book")
            return super().embed_documents(texts)

    data, embedders = keepers(documents=8, questions=1), {"words": EmbedderSpec(Half(), "words")}
    small = experiment(RecordingModel(), data=data, embedders=embedders, metrics=["token_f1"], give_up_after=2)
    report = run(small, tmp_path / "results.db")
    assert (report.outcome, report.answered, report.failed) == ("complete", 4, {"ConnectionError": 4})


def test_where_nothing_fits_the_cell_fails_and_no_other(tmp_path):
    grid = [
        {"token_budget": 3, "chunk_size": 32, "k": 4, "header": "A long header above each passage."},
        {"token_budget": 200, "chunk_size": 32, "k": 4},
    ]
    data = keepers(documents=5, questions=6)
    report = run(experiment(RecordingModel(), data=data, grid=grid, give_up_after=5), tmp_path / "r.db")
    assert report.outcome == "complete"
    assert report.failed == {"BudgetError": 30}
    assert report.answered == 30
    for (message,) in rows(tmp_path / "r.db", "SELECT message FROM results WHERE status = 'failed'"):
        assert "token_budget" in message


HALF = "half \ud83d of a pair"


def test_halves_of_characters_are_no_obstacle(tmp_path):
    from oprag.compare.data.data_set import DataSet, Question

    data = DataSet(
        name="halves",
        documents={"text": f"The answer is {HALF}. " + "Other words stand here. " * 30},
        questions=[
            Question(id=f'an \'"id"\n{HALF}', text=f"What is {HALF}?", documents=("text",), answers=(HALF,)),
            Question(id="2", text=f"What is {HALF}?", documents=("text",), choices=(HALF, "none"), right_choice=0),
        ],
    )
    path = tmp_path / "results.db"
    model = RecordingModel(lambda text: f"It is {HALF}, {reply_to(text)}")
    grid = {"k": 3, "splitter": "words", "chunk_size": 20, "method": [*METHODS, "closed_book"]}
    assert run(experiment(model, data=data, grid=grid), path).complete
    assert "It is half � of a pair" in rows(path, "SELECT answer FROM results WHERE method = 'stuff'")[0][0]
    again = RecordingModel()
    report = run(experiment(again, data=data, grid=grid), path)
    assert (report.complete, again.calls) == (True, [])
