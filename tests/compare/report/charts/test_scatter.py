import math
import re

import pytest

from oprag.compare.report.charts import Axis, Dot, scatter_chart
from oprag.errors import OptionError
from tests.compare.report.charts.helpers import NS, axes, by_class, marked, parsed, texts, value_at

TOKENS, SCORE = Axis("input tokens", "tokens"), Axis("F1")
DOTS = [
    Dot(3000, 0.5, "long", "long_context"),
    Dot(100, 0.2, "small", "stuff"),
    Dot(500, 0.4, "good", "stuff"),
    Dot(900, 0.3, "worse", "refine"),
]


def drawn(*dots, title="Score and tokens", description="What it took.", x=TOKENS, y=SCORE, **options):
    return scatter_chart(dots, title=title, description=description, x=x, y=y, **options)


def test_dots_stand_where_the_numbers_of_the_axes_say_and_say_what_they_are():
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
    small, good, long = (
        next(p for tip, p in marked(root).items() if tip.startswith(n)) for n in ("small", "good", "l")
    )
    path = front.get("d") or ""
    numbers = [float(number) for number in re.findall(r"[-\d.]+", path)]
    assert re.sub(r"[-\d. ]", "", path) == "MHVHV"
    assert numbers == [*small, *good, *long]
    assert small[0] < good[0] < long[0]
    assert small[1] > good[1] > long[1]
    assert svg == drawn(*DOTS, front=[1, 2, 0])


def test_dots_on_the_front_are_numbered_and_listed():
    root = parsed(drawn(*DOTS, front=[0, 2, 1]))
    (numbers,) = by_class(root, "oprag-numbers")
    assert [text.text for text in numbers.findall("svg:text", NS)] == ["1", "2", "3"]
    assert {"small: 100 tokens, F1 0.2", "good: 500 tokens, F1 0.4", "long: 3,000 tokens, F1 0.5"} <= set(texts(root))
    description = root.findtext("svg:desc", "", NS)
    assert "On the front, as (input tokens (tokens), F1): small (100, 0.2); good (500, 0.4); long (3,000, 0.5)." in (
        description
    )
    assert "4 dots of long_context; stuff; refine." in description


def test_without_a_front_there_is_none():
    root = parsed(drawn(*DOTS))
    assert not by_class(root, "oprag-front")
    assert not any("front" in text for text in texts(root))
    assert not by_class(parsed(drawn(*DOTS, front=[1])), "oprag-front")


def test_groups_differ_in_colour_and_shape_and_are_named():
    root = parsed(drawn(*(Dot(n, n, "same", f"group {n}") for n in range(6))))
    groups = by_class(root, "oprag-points")
    assert len({group.get("fill") for group in groups}) == 6
    assert len({re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or "") for group in groups}) == 6
    assert {f"group {n}" for n in range(6)} <= set(texts(root))
    assert "no group" not in texts(parsed(drawn(Dot(1, 1, "alone"))))


def test_two_hundred_groups_keep_sixteen_looks():
    root = parsed(drawn(*(Dot(n, n, "same", f"group {n}") for n in range(200))))
    looks = {
        (group.get("fill"), group.get("stroke"), re.sub(r"^M\S+ [\d.]+", "", group[0].get("d") or ""))
        for group in by_class(root, "oprag-points")
    }
    assert len(looks) == 17
    assert "184 more groups" in texts(root)


def test_ten_thousand_dots_stay_small_and_those_on_the_front_say_what_they_are():
    dots = [Dot(n, math.sin(n), f"dot {n} " + "x" * 80, f"group {n % 3}") for n in range(10_000)]
    svg = drawn(*dots, front=[3, 17])
    root = parsed(svg)
    assert {tip.split()[1] for tip in marked(root)} == {"3", "17"}
    assert sum((path.get("d") or "").count("M") for g in by_class(root, "oprag-points") for path in g) == 10_000
    assert len(svg) < 700_000


def test_a_long_front_is_numbered_in_part():
    root = parsed(drawn(*(Dot(n, n, f"dot {n}") for n in range(30)), front=range(30)))
    (numbers,) = by_class(root, "oprag-numbers")
    assert len(numbers) == 20
    assert "and 10 more, not numbered" in texts(root)
    assert (by_class(root, "oprag-front")[0].get("d") or "").count("H") == 29


def test_without_values_it_says_so():
    assert texts(parsed(drawn())) == ["Score and tokens", "No values."]


@pytest.mark.parametrize("place", [4, -1, 1.0, True, None])
def test_a_front_of_dots_that_there_are_not_is_refused(place):
    with pytest.raises(OptionError, match=f"whole numbers from 0 to 3, got {place}"):
        drawn(*DOTS, front=[place])


@pytest.mark.parametrize(
    ("dot", "message"),
    [
        (Dot(math.nan, 1, "a"), r"x of dot 0 \('a'\) must be a finite number, got nan"),
        (Dot(1, None, "a"), r"y of dot 0 \('a'\) must be a finite number, got None"),  # type: ignore[arg-type]
        (Dot(1, 1, None), "the name of dot 0 must be a string, got None"),  # type: ignore[arg-type]
        (Dot(1, 1, "a", 3), "the group of dot 0 must be a string, got 3"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_drawn_is_refused(dot, message):
    with pytest.raises(OptionError, match=message):
        drawn(dot)


def test_names_are_escaped():
    text = "</title><script>alert(1)</script>\x00"
    root = parsed(drawn(Dot(1, 2, text, text), Dot(2, 3, text, "b"), front=[0, 1], title=text, note=text))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "title", "desc", "g", "path", "text"}
