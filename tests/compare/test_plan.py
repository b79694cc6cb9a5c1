import re
from typing import Any

import pytest

from oprag.compare import EmbedderSpec, Limits, Price, compare, make_plan
from oprag.compare.providers.specs import ModelSpec
from oprag.compare.running.run import run
from oprag.errors import ExperimentError
from tests.cli import provider
from tests.compare.helpers import METHODS, RecordingModel, Words, experiment, reply_to, rows

ALL = {
    "k": 5,
    "chunk_size": 32,
    "method": [*METHODS, "closed_book", "context_only"],
    "order": ["source", "rank", "random"],
    "similarity_threshold": ["none", 0.5],
    "passage_tokens": 60,
}
STEADY = ["stuff", "refine", "map_reduce", "long_context", "map_rerank", "closed_book"]


def refuse(text):
    raise AssertionError("a model was asked")


refuses = RecordingModel(refuse)


def distinct(text):
    """As long as the plan takes it to be, and another one for each prompt, without a refusal."""
    return reply_to(text).replace("unanswerable", "nothing")


# The threshold drops nothing that the question finds, but chunks that its variants find.
VARIANTS = {"k": 2, "chunk_size": 32, "method": "step_down", "similarity_threshold": ["none", 0.5]}


@pytest.mark.parametrize("method", [*METHODS, "closed_book", "context_only", "all", "variants"])
def test_no_more_calls_are_made_than_were_planned(method, tmp_path):
    grid = {"all": ALL, "variants": VARIANTS}.get(method, {**ALL, "method": method})
    plan = make_plan(experiment(refuses, grid=grid))
    model = RecordingModel(distinct)
    report = run(experiment(model, grid=grid), tmp_path / "results.db")
    assert report.complete
    assert plan.answers == report.total
    assert plan.calls >= len(model.calls)
    if method in STEADY:
        assert plan.calls == len(model.calls)
    if method == "context_only":
        assert plan.calls == 0


def test_what_is_done_is_not_planned(tmp_path):
    path = tmp_path / "results.db"
    small = experiment(RecordingModel(), grid=ALL)
    run(small, path)
    plan = make_plan(experiment(refuses, grid=ALL), path)
    assert (plan.calls, plan.done) == (0, plan.answers)

    # Of an experiment that has become smaller, what it still has.
    less = {**ALL, "order": "source"}
    plan = make_plan(experiment(refuses, grid=less), path)
    assert (plan.calls, plan.done) == (0, plan.answers)

    more = {**ALL, "k": [5, 9]}
    told: list[Any] = []
    plan = make_plan(experiment(refuses, grid=more), path, on_progress=lambda *now: told.append(now))
    assert told[-1] == (len(told), plan.answers - plan.done)
    model = RecordingModel()
    run(experiment(model, grid=more), path)
    assert 0 < len(model.calls) <= plan.calls
    assert plan.done < plan.answers


def test_failed_ones_are_planned_on_request(tmp_path):
    path = tmp_path / "results.db"
    run(experiment(RecordingModel(fails=lambda text, before: True), give_up_after=100), path)
    plan = make_plan(experiment(refuses), path)
    assert (plan.failed, plan.calls) == (6, 0)
    plan = make_plan(experiment(refuses), path, retry_failed=True)
    assert (plan.failed, plan.calls) == (6, 6)
    assert "6 failed before" in plan.describe()


def test_a_plan_writes_nothing_unless_it_is_told_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_plan(experiment(refuses, grid=ALL))
    make_plan(experiment(refuses, grid=ALL), "results.db")
    assert not list(tmp_path.iterdir())
    run(experiment(RecordingModel(), grid={"k": 4, "chunk_size": 32}), "results.db")
    before = rows("results.db", "SELECT * FROM vectors")
    make_plan(experiment(refuses, grid=ALL), "results.db")
    assert rows("results.db", "SELECT * FROM vectors") == before


NAMED: dict[str, dict[str, Any]] = {
    "provider": {"models": {"m": ModelSpec("openai:gpt-5-mini")}},
    "embedder": {"embedders": {"e": "openai:text-embedding-3-small"}, "method": "context_only"},
    "score embedder": {"score_embedder": "openai:text-embedding-3-small", "method": "closed_book"},
}


@pytest.mark.parametrize("case", NAMED)
def test_a_plan_opens_nothing_that_is_loaded_or_needs_a_key(case, tmp_path, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    options = dict(NAMED[case])
    grid = {"k": 4, "chunk_size": 32, "method": options.pop("method", "stuff")}
    model = None if "models" in options or grid["method"] == "context_only" else refuses
    plan = make_plan(experiment(model, grid=grid, **options), tmp_path / "results.db")
    assert plan.calls == (0 if case == "embedder" else 6)
    assert list(plan.embedders) == (["e"] if case == "embedder" else [])
    assert not list(tmp_path.iterdir())


def test_what_a_named_model_has_done_is_known_without_opening_it(tmp_path, monkeypatch):
    path = tmp_path / "results.db"
    groq = provider.install(monkeypatch)

    def named(model="cranes", **settings):
        models = {"m": ModelSpec(f"groq:{model}", **settings)}
        return experiment(None, models=models, grid={"k": [2, 4], "chunk_size": 32})

    assert run(named(), path).complete
    groq.made.clear()
    plan = make_plan(named(), path)
    assert (plan.done, plan.calls) == (12, 0)
    # Whatever is said otherwise is another model.
    assert (make_plan(named(max_tokens=2), path).done, make_plan(named(max_tokens=2), path).calls) == (0, 12)
    assert make_plan(named("others"), path).calls == 12
    assert groq.made == []


def test_what_is_found_for_a_plan_is_not_done_again(tmp_path):
    path = tmp_path / "results.db"
    planned = experiment(refuses, grid=ALL)
    make_plan(planned, path, keep=True)
    embedded = planned.embedders["words"].use
    # The questions of the set, and nothing that stands in the place of a reply.
    assert (len(set(embedded.questions)), len(rows(path, "SELECT * FROM vectors"))) == (6, 6 + len(embedded.documents))
    assert not rows(path, "SELECT * FROM replies")
    small = experiment(RecordingModel(), grid=ALL, metrics=["token_f1"])
    run(small, path)
    embedder = small.embedders["words"].use
    assert not {text for text in embedder.documents if text in planned.embedders["words"].use.documents}


def test_what_cannot_be_answered_is_said_beforehand():
    grid = {"k": 4, "chunk_size": 32, "token_budget": [2, 300], "method": ["stuff", "long_context"]}
    grid["source_token_budget"] = 10
    plan = make_plan(experiment(refuses, grid=grid))
    assert sum(number for reason, number in plan.failures.items() if reason.startswith("BudgetError")) == 12
    assert sum(number for reason, number in plan.failures.items() if reason.startswith("SourceTooLongError")) == 6
    assert "cannot be generated: BudgetError" in plan.describe()


def test_the_description_has_everything(tmp_path):
    grid = {"k": 4, "chunk_size": 32, "chunk_overlap": 16, "order": ["source", "rank"], "seed": [0, 1]}
    plan = make_plan(
        experiment(refuses, grid=grid, prices={"m": {"input": 1, "output": 1}}, limits={"calls": 100, "money": 5})
    )
    lines = plan.describe().splitlines()
    assert lines[0] == "2 cells (4 combinations; 2 are equivalent to another one)"
    assert lines[1] == "6 questions, 12 answers"
    assert lines[2] == "12 model calls"
    assert lines[3].startswith("  m: 12 calls, ")
    assert re.search(r", 0\.00\d+$", lines[3])  # what would be nothing with two decimals
    assert lines[4] == "limits: 100 calls (0 spent), 5 money (0 spent)"


GRID = {"k": [2, 4], "chunk_size": 32, "order": ["source", "rank"]}


class Reversed(Words):
    """Another embedder, which finds other chunks."""

    def _embedded(self, texts):
        return super()._embedded([" ".join(text.split()[:3]) for text in texts])


def planned(tmp_path, embedders, **options):
    model = RecordingModel()
    made = experiment(model, grid={**GRID, "embedder": list(embedders)}, embedders=embedders, **options)
    return made, model, make_plan(made, tmp_path / "r.db")


def test_each_embedder_has_its_own_prompts(tmp_path):
    words, other = Words(), Reversed("reversed")
    embedders = {"a": EmbedderSpec(words, paid=True), "b": EmbedderSpec(other, paid=True)}
    made, model, plan = planned(tmp_path, embedders)
    assert not words.documents
    assert not other.questions
    assert list(plan.embedders) == ["a", "b"]
    assert compare(made, tmp_path / "r.db").run is not None
    assert len(model.calls) <= plan.calls
    alone = planned(tmp_path / "alone", {"a": EmbedderSpec(Words(), paid=True)})[2]
    assert plan.calls == 2 * alone.calls


def test_without_a_stand_in_a_plan_equals_its_run(tmp_path):
    embedders = {"a": EmbedderSpec(Words()), "b": EmbedderSpec(Reversed("reversed"))}
    made, model, plan = planned(tmp_path, embedders)
    compare(made, tmp_path / "r.db")
    assert len(model.calls) == plan.calls
    assert plan.embedders == {}


def test_tokens_to_embed_are_counted_once_and_have_a_price(tmp_path):
    words = Words()
    prices = {"m": Price(input=0, output=0), "a": Price(input=1_000_000, output=0)}
    made, _, plan = planned(tmp_path, {"a": EmbedderSpec(words, paid=True)}, prices=prices)
    tokens = plan.embedders["a"].tokens
    assert plan.embedders["a"].money == tokens
    assert plan.money == tokens
    told = f"a: {tokens:,} tokens to embed, {tokens:,.2f}; planned with the packaged embedder instead"
    assert told in plan.describe()
    compare(made, tmp_path / "r.db")
    tokenizer = EmbedderSpec(words).open().tokenizer
    assert tokens == sum(map(tokenizer, [*words.documents, *words.questions]))
    # Vectors of the results file are not made again.
    assert make_plan(made.replace(name="again"), tmp_path / "r.db").embedders["a"].tokens == 0
    with pytest.raises(ExperimentError, match="unknown model or embedder in prices 'c'; expected one of m, a"):
        made.replace(prices={"c": Price(input=1, output=1)})


def test_limits_say_what_they_reserve(tmp_path):
    _, _, plan = planned(tmp_path, {"a": EmbedderSpec(Words())}, limits=Limits(tokens=10))
    assert "the limits reserve the longest one in tokens: 1,024 for m" in plan.describe()
    _, _, plan = planned(tmp_path, {"a": EmbedderSpec(Words())}, limits=Limits(calls=10))
    assert "reserve" not in plan.describe()
