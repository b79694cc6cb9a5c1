"""Settings, the axes in which they differ, and the sequence of the grid as a user has written it."""

from oprag.compare.analysis.settings import grid_values, varying_axes
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


def settings_of(*cells):
    return results_of(*(made({"a": 0.5}, **values) for values in cells)).settings


def test_seeds_and_repeats_are_one_setting():
    cells = [{"order": "random", "seed": seed, "repeat": repeat} for seed in (1, 2) for repeat in (1, 2)]
    one, other = settings_of({}, *cells)
    assert (one.cells, other.cells) == (1, 4)
    assert not {"seed", "repeat"} & other.values.keys()


def test_an_axis_differs_where_those_that_have_it_have_several_values():
    settings = settings_of({"method": "closed_book"}, {"method": "stuff", "k": 4}, {"method": "stuff", "k": 8})
    differ, same = varying_axes(settings)
    assert sorted(differ) == ["k", "method"]
    assert same["order"] == "source"
    assert "k" not in same
    differ, same = varying_axes(settings[:2])
    assert differ == ["method"]
    assert same["k"] == 4
