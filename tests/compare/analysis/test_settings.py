"""Settings, the axes in which they differ, and the sequence of the grid as a user has written it."""

import pytest

from oprag.compare.analysis.settings import grid_values, place_in_grid, varying_axes
from oprag.compare.grid import axes
from tests.compare.analysis.matrices import made, results_of

DESCRIBED = {
    "grid": [{"seed": [2, 1], "method": ["stuff", "closed_book"], "k": [8, 4]}, {"k": [2], "order": ["rank"]}],
    "data": {"b": 3, "a": 3},
    "models": {"big": "", "small": ""},
}


def test_the_axes_of_the_grid_come_first_and_seeds_last():
    listed = grid_values(DESCRIBED)
    assert list(listed)[:3] == ["method", "k", "order"]
    assert list(listed)[-1] in ("seed", "repeat")
    assert set(listed) == set(axes())
    assert (listed["k"], listed["data"], listed["model"], listed["stitch"]) == (
        [8, 4, 2],
        ["b", "a"],
        ["big", "small"],
        [],
    )


def test_values_stand_as_they_are_written_and_others_behind_them():
    listed = grid_values(DESCRIBED)
    defaults = {name: axis.default for name, axis in axes().items()} | {"order": "rank", "data": "b", "model": "big"}
    cells = [("closed_book", None, 0), ("stuff", 4, 1), ("stuff", 8, 1), ("stuff", 8, 2), ("stuff", 2, 2)]
    cells.sort(
        key=lambda cell: place_in_grid({**defaults, **dict(zip(("method", "k", "seed"), cell, strict=True))}, listed)
    )
    assert cells == [("stuff", 8, 2), ("stuff", 8, 1), ("stuff", 4, 1), ("stuff", 2, 2), ("closed_book", None, 0)]


def settings_of(*cells):
    return results_of(*(made({"a": 0.5}, **values) for values in cells)).settings


def test_seeds_and_repeats_are_one_setting():
    cells = [{"order": "random", "seed": seed, "repeat": repeat} for seed in (1, 2) for repeat in (1, 2)]
    one, other = settings_of({}, *cells)
    assert (one.cells, other.cells) == (1, 4)
    assert not {"seed", "repeat"} & other.values.keys()


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
    (setting,) = settings_of(values)
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
    (setting,) = settings_of(values)
    assert there <= set(setting.values)


def test_an_axis_differs_where_those_that_have_it_have_several_values():
    settings = settings_of({"method": "closed_book"}, {"method": "stuff", "k": 4}, {"method": "stuff", "k": 8})
    differ, same = varying_axes(settings)
    assert sorted(differ) == ["k", "method"]
    assert same["order"] == "source"
    assert "k" not in same
    differ, same = varying_axes(settings[:2])
    assert differ == ["method"]
    assert same["k"] == 4
