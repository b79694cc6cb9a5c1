import math
import re

import pytest

from oprag.compare.report.charts.axes import Axis
from oprag.compare.report.charts.scatter import Dot, dot_legend, scatter_chart
from tests.compare.report.charts.helpers import axes, by_class, marked, parsed, value_at

TOKENS, SCORE = Axis("input tokens", "tokens"), Axis("F1")
DOTS = [
    Dot(3000, 0.5, "long", "long_context"),
    Dot(100, 0.2, "small", "stuff"),
    Dot(500, 0.4, "good", "stuff"),
    Dot(900, 0.3, "worse", "refine"),
]


def drawn(*dots, front=()):
    return scatter_chart(dots, title="Score and tokens", description="What it took.", x=TOKENS, y=SCORE, front=front)


def test_dots_are_where_the_numbers_of_the_axes_say_and_say_what_they_are():
    root = parsed(drawn(*DOTS))
    across, upwards = axes(root)
    found = marked(root)
    for dot in DOTS:
        x, y = found[f"{dot.name}\n{dot.group}\n{dot.x:,} tokens\nF1 {dot.y}"]
        assert value_at(across, x) == pytest.approx(dot.x, abs=1)
        assert value_at(upwards, y) == pytest.approx(dot.y, abs=0.001)


def test_the_front_goes_across_and_then_up_whatever_its_sequence():
    svg = drawn(*DOTS, front=[0, 2, 1])
    root = parsed(svg)
    (front,) = by_class(root, "oprag-front")
    small, good, long = (next(p for tip, p in marked(root).items() if tip.startswith(n)) for n in ("sm", "good", "l"))
    path = front.get("d") or ""
    assert re.sub(r"[-\d. ]", "", path) == "MHVHV"
    assert [float(number) for number in re.findall(r"[-\d.]+", path)] == [*small, *good, *long]
    assert svg == drawn(*DOTS, front=[1, 2, 0])
    assert not by_class(parsed(drawn(*DOTS, front=[1])), "oprag-front")


def test_groups_differ_in_colour_and_shape_and_are_named():
    dots = [Dot(n, n, "same", f"group {n}") for n in range(6)]
    groups = by_class(parsed(drawn(*dots)), "oprag-points")
    assert len({group.get("fill") for group in groups}) == 6
    assert len({re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or "") for group in groups}) == 6
    assert [name for _, name in dot_legend(dots)] == [f"group {n}" for n in range(6)]
    assert dot_legend([Dot(1, 1, "alone")]) == []


def test_two_hundred_groups_keep_sixteen_looks():
    dots = [Dot(n, n, "same", f"group {n}") for n in range(200)]
    looks = {
        (group.get("fill"), group.get("stroke"), re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or ""))
        for group in by_class(parsed(drawn(*dots)), "oprag-points")
    }
    assert len(looks) == 17
    assert dot_legend(dots)[-1][1] == "184 more"


def test_ten_thousand_dots_stay_small_and_those_on_the_front_say_what_they_are():
    dots = [Dot(n, math.sin(n), f"dot {n} " + "x" * 80, f"group {n % 3}") for n in range(10_000)]
    svg = drawn(*dots, front=[3, 17])
    assert {tip.split()[1] for tip in marked(parsed(svg))} == {"3", "17"}
    assert len(svg) < 800_000
