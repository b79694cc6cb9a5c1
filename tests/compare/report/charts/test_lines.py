import re

import pytest

from oprag.compare.report.charts import ChartAxis, Point, Series, legend, line_chart
from tests.compare.report.charts.helpers import NS, axes, by_class, marked, parsed, points, texts, value_at

TOKENS = ChartAxis("context length", "tokens")
SCORE = ChartAxis("F1")
BUDGETS = [1000, 2000, 4000, 8000, 16_000, 32_000, 48_000]
SOURCE = Series("source", [Point(b, 0.2 + n / 50, "", 0.15, 0.45) for n, b in enumerate(BUDGETS)])
RANK = Series("rank", [Point(b, 0.3 - n / 50, "", 0.1 + n / 1000, 0.35) for n, b in enumerate(BUDGETS)])


def drawn(*lines, title="Score", description="Two orders.", x=TOKENS, y=SCORE):
    return line_chart(lines, title=title, description=description, x=x, y=y)


def test_points_and_whiskers_are_where_the_numbers_of_the_axes_say():
    root = parsed(drawn(SOURCE))
    across, upwards = axes(root)
    assert [value for value, _ in across] == [1000, 2000, 5000, 10_000, 20_000]
    found = marked(root)
    assert len(found) == 7
    (bar,) = by_class(root, "oprag-bar")
    whiskers = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)", bar.get("d") or "")
    for point, (place, low, high) in zip(SOURCE.points, whiskers, strict=True):
        tip = f"source\n{point.x:,} tokens\nF1 {point.y:.4g} ({point.low:.4g} to {point.high:.4g})"
        x, y = found[tip]
        assert value_at(across, x, logarithmic=True) == pytest.approx(point.x, rel=0.005)
        assert value_at(upwards, y) == pytest.approx(point.y, abs=0.001)
        assert float(place) == x
        assert [value_at(upwards, float(low)), value_at(upwards, float(high))] == pytest.approx(
            [point.low, point.high], abs=0.001
        )


def test_points_of_several_lines_are_beside_each_other():
    root = parsed(drawn(SOURCE, RANK))
    one, other = (next(place for tip, place in marked(root).items() if tip.startswith(n)) for n in ("source", "rank"))
    assert other[0] - one[0] == pytest.approx(3, abs=0.11)


def test_a_line_is_joined_by_x():
    values = [Point(4, 0.4), Point(1, 0.1), Point(2, 0.2), Point(5, 0.5)]
    root = parsed(drawn(Series("one", values), x=ChartAxis("k", "chunks")))
    (line,) = by_class(root, "oprag-line")
    across, upwards = axes(root)
    assert [round(value_at(across, x)) for x, _ in points(line)] == [1, 2, 4, 5]
    assert [round(value_at(upwards, y), 2) for _, y in points(line)] == [0.1, 0.2, 0.4, 0.5]
    assert not by_class(root, "oprag-bar")


def test_lines_differ_in_colour_dash_and_shape_and_only_a_few_have_whiskers():
    lines = [Series(f"line {n}", [Point(1, n, "", n - 1, n + 1), Point(2, n, "", n - 1, n + 1)]) for n in range(5)]
    root = parsed(drawn(*lines))
    shown = by_class(root, "oprag-line")
    assert len({line.get("stroke") for line in shown}) == len({line.get("stroke-dasharray") for line in shown}) == 5
    shapes = {re.sub(r"^M\S+ [\d.]+", "", path.get("d") or "") for path in root.iterfind(".//svg:g/svg:path", NS)}
    assert len(shapes) == 5
    assert not by_class(root, "oprag-bar")
    assert len(by_class(parsed(drawn(*lines[:4])), "oprag-bar")) == 4


def test_marked_points_have_a_ring_and_the_legend_says_what_it_is():
    line = Series("one", [Point(1000, 0.1), Point(2000, 0.3, mark=True)])
    root = parsed(drawn(line))
    (ring,) = root.findall(".//svg:circle", NS)
    place = next(place for tip, place in marked(root).items() if "2,000 tokens" in tip)
    assert (float(ring.get("cx", 0)), float(ring.get("cy", 0))) == place
    assert [name for _, name in legend([line])] == ["one", "sweet spot"]
    assert [name for _, name in legend([SOURCE])] == ["source"]


def test_two_hundred_lines_keep_sixteen_looks():
    many = [Series(f"line {n}", [Point(k, n + k) for k in range(20)]) for n in range(200)]
    root = parsed(drawn(*many, x=ChartAxis("k")))
    looks = {(line.get("stroke"), line.get("stroke-dasharray")) for line in by_class(root, "oprag-line")}
    assert len(looks) == 17
    assert legend(many)[-1][1] == "184 more"


def test_the_drawing_has_numbers_alone_and_the_words_are_alternative_text():
    root = parsed(drawn(SOURCE, RANK))
    assert all(re.fullmatch(r"[\d.,]+", text) for text in texts(root))
    assert root.findtext("svg:title", "", NS) == "Score"
    assert root.findtext("svg:desc", "", NS) == (
        "Two orders. 2 lines: source; rank. context length (tokens), logarithmic: 1,000 to 48,000. F1: 0.18 to 0.32."
    )


def test_names_are_escaped():
    text = "</title><script>alert(1)</script>\x00"
    root = parsed(drawn(Series(text, [Point(1, 2), Point(2, 3)]), title=text, description=text))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "title", "desc", "g", "path", "text"}


def test_a_chart_names_itself_by_ids_that_come_from_its_content():
    root = parsed(drawn(SOURCE))
    assert (root.get("role"), root.get("viewBox")) == ("img", "0 0 360 230")
    assert (root.get("aria-labelledby") or "").split() == [root[0].get("id"), root[1].get("id")]
    others = [drawn(RANK), drawn(SOURCE, title="Another"), drawn(SOURCE, description="More.")]
    assert len({parsed(svg)[0].get("id") for svg in [drawn(SOURCE), *others]}) == 4
    assert drawn(SOURCE) == drawn(SOURCE)
