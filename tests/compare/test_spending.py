"""What models give is checked before it is kept or paid for, and no limit is passed."""

import pytest

from oprag.compare.providers.specs import ModelSpec
from oprag.compare.running.engine import ask
from oprag.compare.running.run import run
from oprag.compare.spending import Price
from oprag.errors import ExperimentError, ModelError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Message, Prompt
from tests.compare.helpers import METHODS, RecordingModel, experiment, keepers, rows

PROMPT = Prompt((Message("user", "Who bakes the bread?"),), "answer")


def reply(**given):
    return ask(ModelSpec(lambda prompt: Completion("Ada", **given), "m").open(), PROMPT)


@pytest.mark.parametrize(
    "usage",
    [Usage(-5, 2), Usage(5, -2), Usage(5, 2, -1), Usage(10**30, 2), (float("nan"), 2, 0, False), (5, 2), "five"],
    ids=str,
)
def test_tokens_that_cannot_be_are_a_failed_call(usage):
    # With a negative number more could be spent than the limit allows.
    error = reply(usage=usage).error
    assert isinstance(error, ModelError)
    assert "must consist of token counts" in str(error)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0, "long", None])
def test_a_time_that_is_none_is_as_if_none_were_told(seconds):
    completion = reply(seconds=seconds)
    assert completion.error is None
    assert 0 < completion.seconds < 60


GRID = {"k": 4, "chunk_size": 32, "method": METHODS}
USAGE = Usage(300, 20, 100)
PRICE = {"input": 2.0, "output": 10.0, "cached": 0.5}
COST = (200 * 2.0 + 100 * 0.5 + 20 * 10.0) / 1_000_000


def counted(text):
    from tests.compare.helpers import reply_to

    # As many tokens as the experiment counts beforehand, or fewer.
    return Completion(reply_to(text), usage=Usage(max(1, len(text.encode()) // 8), 20, 5))


def test_prices_are_for_a_million_tokens():
    assert Price(**PRICE).of(USAGE) == pytest.approx(COST)
    assert Price(input=2, output=10).of(USAGE) == pytest.approx((300 * 2 + 20 * 10) / 1_000_000)
    assert Price(input=2, output=10, cached=1).of(Usage(5, 0, 100)) == pytest.approx(100 / 1_000_000)


def test_a_limit_of_money_needs_prices():
    with pytest.raises(ExperimentError, match="requires known costs, but 'm' has no price"):
        experiment(RecordingModel(), limits={"money": 1})
    with pytest.raises(ExperimentError, match="unknown model or embedder in prices 'n'"):
        experiment(RecordingModel(), prices={"n": PRICE})


@pytest.mark.parametrize(
    ("most", "limit"), [(1, {"calls": 30}), (8, {"tokens": 9_000}), (64, {"money": 0.06}), (64, {"calls": 30})]
)
def test_no_limit_is_passed_and_raising_it_completes(most, limit, tmp_path):
    path = tmp_path / "results.db"
    model = RecordingModel(counted, seconds=0.001, fails=lambda text, before: before == 0 and len(text) % 5 == 0)
    options = {
        "grid": GRID,
        "prices": {"m": PRICE},
        "max_concurrency": most,
        "metrics": ["token_f1"],
        "data": keepers(documents=3, questions=5),
    }
    report = run(experiment(model, limits=limit, **options), path)
    ((name, most_of_it),) = limit.items()
    assert f"limit of {most_of_it:,} {name} is reached" in report.outcome
    assert getattr(report.spent, name) <= most_of_it
    assert report.remaining > 0
    # Not left half unused, whatever the calls on their way might have taken.
    assert getattr(report.spent, name) > 0.6 * most_of_it
    ((calls, tokens, money),) = rows(
        path, "SELECT count(*), sum(input_tokens + output_tokens), sum(money) FROM replies"
    )
    ((failed,),) = rows(path, "SELECT count(*) FROM failed_calls")
    assert len(model.calls) == calls + failed == report.spent.calls
    assert report.spent.tokens == tokens
    assert report.spent.money == pytest.approx(money)

    # All runs together count.
    before = len(model.calls)
    again = run(experiment(model, limits=limit, **options), path)
    assert getattr(again.spent, name) <= most_of_it
    # At most some calls that are small enough for what was left.
    assert len(model.calls) - before < before / 10

    complete = run(experiment(model, limits={name: most_of_it * 1_000}, **options), path, retry_failed=True)
    assert complete.answered + sum(complete.failed.values()) == complete.total
    assert complete.outcome == "complete"


def test_a_limit_of_nothing_asks_nothing(tmp_path):
    model = RecordingModel()
    grid = {"k": 4, "chunk_size": 32, "method": ["stuff", "context_only"]}
    report = run(experiment(model, grid=grid, limits={"calls": 0}), tmp_path / "results.db")
    assert not model.calls
    # What needs no call is done.
    assert report.answered <= 6
    assert "the limit of 0 calls is reached: 0 spent" in report.outcome
