import math
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.report.charts import Axis, Line, LinePoint, line_chart
from oprag.errors import OptionError
from tests.compare.report.charts.helpers import (
    NS,
    axes,
    by_class,
    labels,
    marked,
    parsed,
    places,
    points,
    size,
    texts,
    value_at,
)

TOKENS = Axis("context length", "tokens", logarithmic=True)
SCORE = Axis("F1")
BUDGETS = [1000, 2000, 4000, 8000, 16_000, 32_000, 48_000]
SOURCE = Line("source", [LinePoint(b, 0.2 + n / 50, 0.15, 0.45) for n, b in enumerate(BUDGETS)])
RANK = Line("rank", [LinePoint(b, 0.3 - n / 50, 0.1 + n / 1000, 0.35) for n, b in enumerate(BUDGETS)])


def drawn(*series, title="Score", description="Two orders.", x=TOKENS, y=SCORE, **options):
    return line_chart(series, title=title, description=description, x=x, y=y, **options)


def test_points_stand_where_the_numbers_of_the_axes_say():
    root = parsed(drawn(SOURCE, RANK))
    across, upwards = axes(root)
    assert [value for value, _ in across] == [1000, 2000, 4000, 8000, 16_000, 32_000]
    found = marked(root)
    assert len(found) == 14
    for line in (SOURCE, RANK):
        for point in line.points:
            assert point.y is not None
            tip = next(tip for tip in found if tip.startswith(f"{line.name}\n{point.x:,} tokens\n"))
            x, y = found[tip]
            assert value_at(across, x, logarithmic=True) == pytest.approx(point.x, rel=0.005)
            assert value_at(upwards, y) == pytest.approx(point.y, abs=0.001)
            assert f"F1 {point.y:.4g} ({point.low:.4g} to {point.high:.4g})" in tip


def test_axes_are_even():
    across, upwards = axes(parsed(drawn(SOURCE)))
    steps = [b[1] - a[1] for a, b in pairwise(across)]
    assert steps == pytest.approx([steps[0]] * len(steps), abs=0.11)
    assert steps[0] > 0
    rises = [b[1] - a[1] for a, b in pairwise(upwards)]
    assert rises == pytest.approx([rises[0]] * len(rises), abs=0.11)
    assert rises[0] < 0


def test_a_band_goes_along_the_upper_ends_and_back_along_the_lower_ones():
    root = parsed(drawn(RANK))
    across, upwards = axes(root)
    (band,) = by_class(root, "oprag-band")
    border = [(value_at(across, x, logarithmic=True), value_at(upwards, y)) for x, y in points(band)]
    expected = [(p.x, p.high) for p in RANK.points] + [(p.x, p.low) for p in reversed(RANK.points)]
    assert [x for x, _ in border] == pytest.approx([x for x, _ in expected], rel=0.005)
    assert [y for _, y in border] == pytest.approx([y for _, y in expected], abs=0.001)


def test_a_line_is_joined_by_x_and_broken_where_a_value_is_missing():
    values = [LinePoint(4, 0.4), LinePoint(1, 0.1), LinePoint(3, None, 0.2, 0.3), LinePoint(2, 0.2), LinePoint(5, 0.5)]
    root = parsed(drawn(Line("one", values), x=Axis("k", "chunks")))
    (line,) = by_class(root, "oprag-line")
    across, upwards = axes(root)
    assert (line.get("d") or "").count("M") == 2
    assert [round(value_at(across, x)) for x, _ in points(line)] == [1, 2, 4, 5]
    assert [round(value_at(upwards, y), 2) for _, y in points(line)] == [0.1, 0.2, 0.4, 0.5]
    assert len(marked(root)) == 4
    assert not by_class(root, "oprag-band")


def test_an_interval_of_one_point_alone_is_a_bar():
    root = parsed(drawn(Line("one", [LinePoint(4096, 0.5, 0.4, 0.7)])))
    (bar,) = by_class(root, "oprag-bar")
    _, upwards = axes(root)
    (x, high), (same, low) = points(bar)
    assert x == same == next(iter(marked(root).values()))[0]
    assert [value_at(upwards, low), value_at(upwards, high)] == pytest.approx([0.4, 0.7])
    assert not by_class(root, "oprag-line")


def test_lines_differ_in_colour_dash_and_shape_and_have_a_name_each():
    root = parsed(drawn(*(Line(f"line {n}", [LinePoint(1, n), LinePoint(2, n)]) for n in range(5))))
    lines = by_class(root, "oprag-line")
    assert len({line.get("stroke") for line in lines}) == 5
    assert len({line.get("stroke-dasharray") for line in lines}) == 5
    shapes = {re.sub(r"^M\S+ [\d.]+", "", path.get("d") or "") for path in root.iterfind(".//svg:g/svg:path", NS)}
    assert len(shapes) == 5
    assert {f"line {n}" for n in range(5)} <= set(texts(root))


def test_marked_points_have_a_ring_and_the_legend_says_what_it_is():
    points_ = [LinePoint(1000, 0.1), LinePoint(2000, 0.3, mark=True), LinePoint(3000, None, mark=True)]
    root = parsed(drawn(Line("one", points_), marked="best of all"))
    rings = root.findall(".//svg:circle", NS)
    assert len(rings) == 2  # on the chart and in the legend
    found = marked(root)
    place = next(place for tip, place in found.items() if "2,000 tokens" in tip)
    assert (float(rings[0].get("cx", 0)), float(rings[0].get("cy", 0))) == place
    assert "best of all" in texts(root)
    assert "best of all" not in texts(parsed(drawn(SOURCE, marked="best of all")))


def test_two_hundred_lines_keep_sixteen_looks():
    many = [Line(f"line {n}", [LinePoint(k, n + k) for k in range(20)]) for n in range(200)]
    svg = drawn(*many, x=Axis("k"))
    root = parsed(svg)
    lines = by_class(root, "oprag-line")
    assert len(lines) == 200
    looks = [(line.get("stroke"), line.get("stroke-dasharray")) for line in lines]
    assert len(set(looks)) == 17
    assert "184 more, each named where one points at it" in texts(root)
    assert {line.findtext("svg:title", "", NS) for line in lines} == {f"line {n}" for n in range(200)}
    assert len(svg) < 120_000


def test_thousands_of_points_are_lines_alone():
    svg = drawn(Line("long", [LinePoint(k, k % 7) for k in range(10_000)]), x=Axis("k"))
    assert not marked(parsed(svg))
    assert len(svg) < 150_000


@pytest.mark.parametrize("series", [(), (Line("one", []),), (Line("one", [LinePoint(1, None), LinePoint(2, None)]),)])
def test_without_values_it_says_so(series):
    root = parsed(drawn(*series))
    assert texts(root) == ["Score", "No values."]
    assert root.findtext("svg:desc", "", NS) == "Two orders. There are no values."


def test_it_can_be_read_aloud():
    root = parsed(drawn(SOURCE, RANK, note="Bands: 95 % intervals."))
    assert root.get("role") == "img"
    assert root.findtext("svg:title", "", NS) == "Score"
    assert root.findtext("svg:desc", "", NS) == (
        "Two orders. 2 lines: source; rank. context length (tokens), logarithmic: 1,000 to 48,000. F1: 0.1 to 0.45. "
        "Bands: 95 % intervals."
    )
    assert {"Score", "F1", "context length (tokens)", "Bands: 95 % intervals."} <= set(texts(root))


def test_the_axis_holds_what_it_is_asked_to_and_what_there_is():
    def ends(least, most):
        values = labels(parsed(drawn(SOURCE, y=Axis("F1", least=least, most=most))), "y")
        return values[0], values[-1]

    assert ends(0, 1) == ("0", "1.0")
    assert ends(0.2, 0.3) == ("0.15", "0.45")


@pytest.mark.parametrize(
    ("last", "expected"), [(3, ["0", "1", "2", "3"]), (2.5, ["0", "0.5", "1.0", "1.5", "2.0", "2.5"])]
)
def test_there_is_no_number_between_counts(last, expected):
    values = [LinePoint(0, 0.1), LinePoint(1, 0.5), LinePoint(last, 0.7)]
    assert labels(parsed(drawn(Line("one", values), x=Axis("k"))), "x") == expected


def test_values_that_are_alike_or_differ_by_rounding_have_room_around_them():
    for other in (0.3, 0.1 + 0.2):
        root = parsed(drawn(Line("flat", [LinePoint(1, 0.3), LinePoint(2, other)]), x=Axis("k")))
        _, upwards = axes(root)
        heights = {y for _, y in marked(root).values()}
        assert len(heights) == 1
        assert value_at(upwards, heights.pop()) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (LinePoint(1, math.nan), "y of point 0 of the line 'a' must be a finite number, got nan"),
        (LinePoint(math.inf, 1), "x of point 0 of the line 'a' must be a finite number, got inf"),
        (LinePoint(None, 1), "x of point 0 of the line 'a' must be a finite number, got None"),  # type: ignore[arg-type]
        (LinePoint(1, "0.5"), "must be a finite number, got '0.5'"),  # type: ignore[arg-type]
        (LinePoint(1, 1e301), "between −1e300 and 1e300 to be drawn, got 1e\\+301"),
        (LinePoint(1, 1, 0.5), "must go from low to high, got 0.5 and None"),
        (LinePoint(1, 1, 0.9, 0.5), "must go from low to high, got 0.9 and 0.5"),
        (LinePoint(0, 1), "is logarithmic, so every value on it must be above 0, got 0.0"),
    ],
)
def test_what_cannot_be_drawn_is_refused(point, message):
    with pytest.raises(OptionError, match=message):
        drawn(Line("a", [point]))


@pytest.mark.parametrize("option", ["title", "description", "marked", "note"])
def test_texts_are_texts(option):
    with pytest.raises(OptionError, match=f"{option} must be a string, got 3"):
        drawn(SOURCE, **{option: 3})


def test_an_axis_is_checked():
    with pytest.raises(OptionError, match="least must be below most, got 1 and 1"):
        Axis("F1", least=1, most=1)
    with pytest.raises(OptionError, match="least of a logarithmic axis must be above 0, got 0"):
        Axis("F1", logarithmic=True, least=0)
    with pytest.raises(OptionError, match="the title of an axis must be a string, got None"):
        Axis(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["</title><script>alert(1)</script>", "\x00\x1b[31m\ud83d\ufffe", "a & b < \"c\" 'd'"])
def test_names_are_escaped(text):
    series = [Line(text, [LinePoint(1, 2, 1, 3, mark=True), LinePoint(2, 3)])] * 20
    axis = Axis(text, text)
    root = parsed(drawn(*series, title=text, description=text, x=axis, y=axis, marked=text, note=text))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {
        *("svg", "title", "desc", "g", "path", "text", "circle"),
    }


finite = st.floats(-1e300, 1e300)


@settings(max_examples=60)
@given(st.lists(st.tuples(finite, finite, finite, finite), min_size=1, max_size=8), st.text(max_size=60))
def test_whatever_the_values_it_stays_on_its_drawing(values, text):
    line = Line(text, [LinePoint(x, y, min(a, b), max(a, b)) for x, y, a, b in values])
    root = parsed(drawn(line, x=Axis("x"), title=text))
    width, height = size(root)
    for x, y in places(root):
        assert -0.1 <= x <= width + 0.1
        assert -0.1 <= y <= height + 0.1


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300)), min_size=1, max_size=8))
def test_logarithmic_axes_too(values):
    line = Line("one", [LinePoint(x, y) for x, y in values])
    root = parsed(drawn(line, y=Axis("y", logarithmic=True)))
    width, height = size(root)
    for x, y in places(root):
        assert -0.1 <= x <= width + 0.1
        assert -0.1 <= y <= height + 0.1
