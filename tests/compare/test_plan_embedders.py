"""Plans with embedders that cost money: they are not called, and none of their calls is left out."""

import pytest

from oprag.compare import EmbedderSpec, Limits, Price, compare, make_plan
from oprag.errors import ExperimentError
from tests.compare.helpers import RecordingModel, Words, experiment

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
    assert f"a: {tokens:,} tokens to embed" in plan.describe()
    compare(made, tmp_path / "r.db")
    tokenizer = EmbedderSpec(words).open().tokenizer
    assert tokens == sum(map(tokenizer.count, [*words.documents, *words.questions]))
    # Vectors of the results file are not made again.
    assert make_plan(made, tmp_path / "r.db").embedders["a"].tokens == 0
    with pytest.raises(ExperimentError, match="unknown model or embedder in prices 'c'; expected one of m, a"):
        made.replace(prices={"c": Price(input=1, output=1)})


def test_limits_say_what_they_reserve(tmp_path):
    _, _, plan = planned(tmp_path, {"a": EmbedderSpec(Words())}, limits=Limits(tokens=10))
    assert "the limits reserve the longest one in tokens: 1,024 for m" in plan.describe()
    _, _, plan = planned(tmp_path, {"a": EmbedderSpec(Words())}, limits=Limits(calls=10))
    assert "reserve" not in plan.describe()
