import math
import re

import pytest

from oprag.compare.report.charts import ChartAxis, Point, Series, legend, scatter_chart
from tests.compare.report.charts.helpers import axes, by_class, marked, parsed, value_at

TOKENS, SCORE = ChartAxis("input tokens", "tokens"), ChartAxis("F1")
LONG, SMALL, GOOD = Point(3000, 0.5, "long"), Point(100, 0.2, "small"), Point(500, 0.4, "good")
GROUPS = [
    Series("long_context", [LONG]),
    Series("stuff", [SMALL, GOOD]),
    Series("refine", [Point(900, 0.3, "worse")]),
]


def drawn(*groups, front=()):
    return scatter_chart(
        groups,
        title="Score and tokens",
        description="What it took.",
        x=TOKENS,
        y=SCORE,
        front=[one[:2] for one in front],
    )


def many(count):
    return [Series(f"group {n}", [Point(n, n, "same")]) for n in range(count)]


def test_dots_are_where_the_numbers_of_the_axes_say_and_say_what_they_are():
    root = parsed(drawn(*GROUPS))
    across, upwards = axes(root)
    found = marked(root)
    for group in GROUPS:
        for dot in group.points:
            x, y = found[f"{dot.name}\n{group.name}\n{dot.x:,} tokens\nF1 {dot.y}"]
            assert value_at(across, x, logarithmic=True) == pytest.approx(dot.x, rel=0.005)
            assert value_at(upwards, y) == pytest.approx(dot.y, abs=0.001)


def test_the_front_goes_across_and_then_up_whatever_its_sequence():
    svg = drawn(*GROUPS, front=[LONG, GOOD, SMALL])
    root = parsed(svg)
    (front,) = by_class(root, "oprag-front")
    small, good, long = (next(p for tip, p in marked(root).items() if tip.startswith(n)) for n in ("sm", "good", "l"))
    path = front.get("d") or ""
    assert re.sub(r"[-\d. ]", "", path) == "MHVHV"
    assert [float(number) for number in re.findall(r"[-\d.]+", path)] == [*small, *good, *long]
    assert svg == drawn(*GROUPS, front=[SMALL, GOOD, LONG])
    assert not by_class(parsed(drawn(*GROUPS, front=[SMALL])), "oprag-front")


def test_groups_differ_in_colour_and_shape_and_are_named():
    groups = by_class(parsed(drawn(*many(6))), "oprag-points")
    assert len({group.get("fill") for group in groups}) == 6
    assert len({re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or "") for group in groups}) == 6
    assert [name for _, name in legend(many(6), lines=False)] == [f"group {n}" for n in range(6)]


def test_two_hundred_groups_keep_sixteen_looks():
    looks = {
        (group.get("fill"), group.get("stroke"), re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or ""))
        for group in by_class(parsed(drawn(*many(200))), "oprag-points")
    }
    assert len(looks) == 17
    assert legend(many(200), lines=False)[-1][1] == "184 more"


def test_ten_thousand_dots_stay_small_and_those_on_the_front_say_what_they_are():
    dots = [Point(n, math.sin(n), f"dot {n} " + "x" * 80) for n in range(10_000)]
    svg = drawn(Series("all", dots), front=[dots[3], dots[17]])
    assert {tip.split()[1] for tip in marked(parsed(svg))} == {"3", "17"}
    assert len(svg) < 800_000
