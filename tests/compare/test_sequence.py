"""The sequence of cells is that of the grid as a user has written it."""

from oprag.compare.axes import axes
from oprag.compare.sequence import place_of, values_of

DESCRIBED = {
    "grid": [{"seed": [2, 1], "method": ["stuff", "closed_book"], "k": [8, 4]}, {"k": [2], "order": ["rank"]}],
    "data": {"b": 3, "a": 3},
    "models": {"big": "", "small": ""},
}


def test_the_axes_of_the_grid_come_first_and_seeds_last():
    listed = values_of(DESCRIBED)
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
    listed = values_of(DESCRIBED)
    defaults = {name: axis.default for name, axis in axes().items()} | {"order": "rank", "data": "b", "model": "big"}
    cells = [("closed_book", None, 0), ("stuff", 4, 1), ("stuff", 8, 1), ("stuff", 8, 2), ("stuff", 2, 2)]
    cells.sort(key=lambda cell: place_of({**defaults, **dict(zip(("method", "k", "seed"), cell, strict=True))}, listed))
    assert cells == [("stuff", 8, 2), ("stuff", 8, 1), ("stuff", 4, 1), ("stuff", 2, 2), ("closed_book", None, 0)]
