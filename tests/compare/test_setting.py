"""Settings: cells that differ in seeds and repeats alone, and the axes in which settings differ."""

import pytest

from oprag.compare.axes import axes
from oprag.compare.reading import CellAnswers, KeptAnswer
from oprag.compare.setting import settings_of, varying_axes

DEFAULTS = {name: axis.default for name, axis in axes().items()} | {"data": "book", "model": "m", "embedder": "local"}


def cell(answers=(), **values):
    kept = {
        question: KeptAnswer(score is None, 1, 10, 2, 0, 5, 8, {} if score is None else {"token_f1": score})
        for question, score in dict(answers).items()
    }
    return CellAnswers(str(values), {**DEFAULTS, **values}, 3, kept)


def test_seeds_and_repeats_are_one_setting():
    cells = [cell(order="random", seed=seed, repeat=repeat) for seed in (1, 2) for repeat in (1, 2)]
    one, other = settings_of([cell(), *cells])
    assert [len(one.cells), len(other.cells)] == [1, 4]
    assert "seed" not in other.values
    assert "repeat" not in other.values


def test_scores_are_averaged_where_all_cells_have_one():
    first = cell({"a": 0.0, "b": 1.0, "c": 0.5}, order="random", seed=1)
    second = cell({"a": 1.0, "b": 1.0, "c": None}, order="random", seed=2)
    (setting,) = settings_of([first, second])
    assert setting.scores("token_f1") == {"a": 0.5, "b": 1.0}
    assert setting.scores("rouge_l") == {}


def test_equal_scores_have_exactly_their_own_mean():
    scores = {str(number): number / 7 for number in range(50)}
    (setting,) = settings_of(cell(scores, order="random", seed=seed) for seed in range(3))
    assert setting.scores("token_f1") == scores


@pytest.mark.parametrize(
    ("values", "without"),
    [
        ({"method": "closed_book"}, {"k", "order", "splitter", "embedder", "search", "store", "variants"}),
        ({"method": "context_only"}, {"model", "variants", "passage_tokens", "rank_by"}),
        ({"method": "stuff"}, {"variants", "passage_tokens", "inner_method", "min_chunks"}),
        ({"method": "stuff", "order": "rank"}, {"source_ranking"}),
        ({"method": "step_down", "inner_method": "stuff"}, {"passage_tokens"}),
    ],
)
def test_axes_without_an_effect_are_no_part_of_a_setting(values, without):
    (setting,) = settings_of([cell(**values)])
    assert without.isdisjoint(setting.values)
    assert setting.values["method"] == values["method"]


@pytest.mark.parametrize(
    ("values", "there"),
    [
        ({"method": "stuff"}, {"k", "order", "source_ranking", "model", "splitter"}),
        ({"method": "step_down", "inner_method": "map_reduce"}, {"variants", "inner_method", "passage_tokens"}),
        ({"method": "stuff", "redundancy_threshold": 0.9}, {"min_chunks"}),
        ({"method": "of_my_own"}, {"variants", "passage_tokens", "inner_method", "rank_by"}),
    ],
)
def test_axes_with_an_effect_are(values, there):
    (setting,) = settings_of([cell(**values)])
    assert there <= set(setting.values)


def test_an_axis_differs_where_those_that_have_it_have_several_values():
    settings = settings_of([cell(method="closed_book"), cell(method="stuff", k=4), cell(method="stuff", k=8)])
    differ, same = varying_axes(settings)
    assert sorted(differ) == ["k", "method"]
    assert same["order"] == "source"
    assert "k" not in same
    differ, same = varying_axes(settings[:2])
    assert differ == ["method"]
    assert same["k"] == 4


def test_one_is_not_true():
    differ, _ = varying_axes(settings_of([cell(stitch=True), cell(stitch=1)]))
    assert differ == ["stitch"]
