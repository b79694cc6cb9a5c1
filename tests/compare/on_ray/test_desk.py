"""The desk by itself: what it grants, and to whom."""

import pytest

from oprag.compare.db.records import AnswerRecord, Reply, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.on_ray.desk import Desk
from oprag.compare.spec.money import Limits
from oprag.compare.spec.resolved import ResolvedExperiment
from oprag.errors import ResultsFileError
from oprag.methods.model_calls import Completion, Usage
from tests.compare.helpers import RecordingModel, experiment, rows

CALL = Spent(1, 100)


@pytest.fixture
def file(tmp_path):
    """A file with a run that goes on."""
    opened = ResolvedExperiment(experiment(RecordingModel()))
    file = ResultsFile(tmp_path / "results.db")
    file.begin("small", {}, opened.cell_rows, opened.question_rows, {})
    file.places = [(unit.cell_key, unit.question_key) for unit in opened.units()]  # type: ignore[attr-defined]
    return file


def desk(file, spent=None, **limits):
    return Desk(str(file.path), file.run, Limits(**limits), spent or Spent())


def answer(place, text="yes"):
    return AnswerRecord(cell=place[0], question=place[1], status="answered", text=text)


def test_calls_of_all_workers_and_of_earlier_runs_count_together(file):
    at = desk(file, Spent(7), calls=10)
    one, other = (at.begin(share).turn for share in (0, 1))
    assert at.reserve(one, CALL) is None
    assert at.reserve(other, CALL) is None
    at.settle(one, CALL, Spent(1, 20))
    assert at.reserve(other, CALL) is None
    refused = at.reserve(one, CALL)
    assert refused is not None
    assert refused.reason.startswith("the limit of 10 calls is reached: 10 are spent")
    assert at.news()[1:] == (Spent(8, 20), 2)


def test_a_refusal_is_final_when_nothing_is_on_its_way(file):
    at = desk(file, tokens=250)
    one, other = (at.begin(share).turn for share in (0, 1))
    assert at.reserve(one, CALL) is None
    assert at.reserve(one, CALL) is None
    refused = at.reserve(other, CALL)
    assert refused is not None
    assert not refused.final
    # They took less than they might.
    at.settle(one, CALL, Spent(1, 40))
    assert at.reserve(other, CALL) is None
    at.settle(one, CALL, Spent(1, 40))
    at.settle(other, CALL, Spent(1, 80))
    refused = at.reserve(one, CALL)
    assert refused is not None
    assert refused.final


def test_what_a_dead_worker_had_reserved_is_given_back(file):
    at = desk(file, calls=2)
    first = at.begin(0).turn
    assert at.reserve(first, CALL) is None
    assert at.reserve(first, CALL) is None
    assert at.reserve(first, CALL) is not None
    second = at.begin(0).turn
    assert (first.number, second.number) == (1, 2)
    assert at.news().running == 0
    assert at.reserve(second, CALL) is None
    # One that was taken for dead and is not: it makes no more calls, and what it has spent counts.
    refused = at.reserve(first, CALL)
    assert refused is not None
    assert refused == ("another worker went on with these questions", True)
    at.settle(first, CALL, Spent(1, 30))
    assert at.news()[1:] == (Spent(1, 30), 1)


def test_a_call_is_made_by_one_worker_at_a_time(file):
    at = desk(file)
    one, other = (at.begin(share).turn for share in (0, 1))
    assert at.claim(one, "key") is True
    assert at.claim(other, "key") is False
    assert at.claim(other, "another") is True
    # Whoever does not make it cannot end it.
    at.release(other, "key")
    assert at.claim(other, "key") is False
    # It failed: the other one makes it again.
    at.release(one, "key")
    assert at.claim(other, "key") is True
    at.do("put", [Reply("key", "model", "answer", "yes", Usage(3, 1), None, 0.1)])
    at.release(other, "key")
    reply = at.claim(one, "key")
    assert isinstance(reply, Completion)
    assert reply.text == "yes"


@pytest.mark.parametrize("again", [True, False])
def test_what_a_dead_worker_was_at_is_made_by_others(again, file):
    at = desk(file, calls=1)
    one, other = (at.begin(share).turn for share in (0, 1))
    assert at.claim(one, "key") is True
    assert at.reserve(one, CALL) is None
    if again:
        at.begin(0)
    else:
        at.abandon(0)
    assert at.claim(other, "key") is True
    assert at.reserve(other, CALL) is None


def test_after_a_stop_nothing_is_granted(file):
    at = desk(file)
    turn = at.begin(0).turn
    assert at.stopped() is None
    assert at.reserve(turn, CALL) is None
    at.stop("interrupted")
    at.stop("later")
    assert at.stopped() == "interrupted"
    assert at.reserve(turn, CALL) == ("interrupted", True)


def test_a_worker_is_told_what_those_before_it_have_done_and_nothing_counts_twice(file):
    at = desk(file)
    first, other = at.begin(0), at.begin(1)
    assert first.done == other.done == frozenset()
    at.keep_answers(first.turn, [answer(file.places[0])])
    at.keep_answers(other.turn, [answer(file.places[1])])
    assert at.begin(0).done == {file.places[0]}
    at.keep_answers(first.turn, [answer(file.places[0], "no"), answer(file.places[2])])
    assert [record.question for record in at.news().answers] == [question for _, question in file.places[:3]]
    assert at.news().answers == []
    assert rows(file.path, "SELECT text FROM answers ORDER BY id") == [("yes",)] * 3


def test_errors_of_the_file_are_its_own(file):
    at = desk(file)
    turn = at.begin(0).turn
    at.close()
    file.close()
    for path in file.path.parent.iterdir():
        path.unlink()
    with pytest.raises(ResultsFileError, match="was deleted or replaced"):
        at.keep_answers(turn, [answer(file.places[0])])
