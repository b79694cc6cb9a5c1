"""Figures: what is drawn is read back from them."""

import subprocess
import sys
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.analysis.settings import difference_text, named
from oprag.compare.plotting import pareto_front, plot_curves, plot_differences, plot_pareto, svg_of
from oprag.errors import MissingExtraError
from tests.compare.analysis.matrices import frame, made
from tests.compare.analysis.test_best import KS, PEAK, curve

mpl: Any = pytest.importorskip("matplotlib")

FEW = st.integers(0, 6).map(float)


def drawn(results, axis="k") -> Any:
    curves = results.curves(axis)
    return plot_curves(curves, [named(one.values, results.axes) or one.metric for one in curves], x=axis)


def lines_of(figure) -> dict[str, Any]:
    """The lines by their labels."""
    return {line.get_label().strip(): line for line in figure.axes[0].lines if not line.get_label().startswith("_")}


def stars_of(figure) -> list[tuple[float, float]]:
    return [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in figure.axes[0].lines
        if line.get_marker() == "*" and len(line.get_xdata()) == 1
    ]


def test_a_line_for_each_order_with_its_interval_and_a_star_at_a_sweet_spot():
    whole = frame(*curve(PEAK, order="source"), *curve(dict.fromkeys(KS, 0.5), seed=1, order="rank"))
    figure = drawn(whole)
    lines = lines_of(figure)
    assert set(lines) == {"source", "rank (flat)"}
    assert list(lines["source"].get_xdata()) == list(KS)
    source = [row for row in whole.rows if row["order"] == "source"]
    assert list(lines["source"].get_ydata()) == [row["token_f1"] for row in source]
    whiskers = [segment[:, 1].tolist() for segment in figure.axes[0].collections[0].get_segments()]
    ends = [(row["token_f1_low"], row["token_f1_high"]) for row in source]
    assert whiskers == [pytest.approx(both) for both in ends]
    assert stars_of(figure) == [(16, source[2]["token_f1"])]
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("k", "token_f1")
    assert figure.axes[0].get_xscale() == "log"


@pytest.mark.parametrize(("curves", "bars"), [(4, 4), (5, 0)])
def test_bars_of_more_than_four_curves_could_not_be_told_apart(curves, bars):
    figure = drawn(frame(*(made({"a": 0.1, "b": 0.3}, k=k, model=str(n)) for n in range(curves) for k in (1, 2))))
    assert len(figure.axes[0].collections) == bars
    assert ("with confidence interval" in figure.axes[0].get_title()) == bool(bars)


def test_none_has_its_place_at_an_end():
    scores = {"a": 0.1, "b": 0.3}
    figure = drawn(
        frame(*(made(scores, redundancy_threshold=value) for value in (None, 0.5, 0.9))), "redundancy_threshold"
    )
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["0.5", "0.9", "none"]
    figure = drawn(
        frame(*(made(scores, similarity_threshold=value) for value in (0.5, None, 0.9))), "similarity_threshold"
    )
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["none", "0.5", "0.9"]
    (line,) = lines_of(figure).values()
    assert list(line.get_xdata()) == [0, 1, 2]
    assert [*lines_of(drawn(frame(made(scores, k=8))))] == ["token_f1"]  # one point is not flat


def test_scores_against_costs_with_the_front():
    scores, costs = [0.1, 0.3, 0.2, 0.9, 0.05], [13, 23, 33, 53, 8]
    groups = ["source", "rank", "source", "rank", "none"]
    figure = plot_pareto(scores, costs, groups, metric="token_f1", cost="tokens")
    lines = lines_of(figure)
    assert set(lines) == {*groups, "Pareto front"}
    assert list(lines["Pareto front"].get_xdata()) == [8, 13, 23, 53]
    assert list(lines["source"].get_ydata()) == [0.1, 0.2]
    assert figure.axes[0].get_xscale() == "linear"  # the largest is less than eight times the smallest


def hostile():
    scores = {"a": 0.1, "b": 0.3}
    names = ("$\\frac{", "_hidden", "x\x1b", "</svg><script>", "漢")
    return drawn(frame(*(made(scores, k=k, model=name) for k in (1, 2) for name in names)))


def test_differences_have_their_names_and_figures_beside_them():
    whole = frame(*curve(dict.fromkeys(KS, 0.5)), *curve(PEAK, seed=1, order="rank"))
    differences = [pair.difference for pair in whole.differences("order")]
    rows = [("$k$, all", differences[0]), *(("k", one) for one in differences[1:])]
    figure = plot_differences(rows, label="rank minus source")
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == [f"{name}: {difference_text(one)}" for name, one in rows]
    assert [0, 0] in [list(line.get_xdata()) for line in figure.axes[0].lines]
    filled = [bar[0].get_markerfacecolor() != "white" for bar in figure.axes[0].containers]
    assert filled == [one.significant for one in differences]
    assert True in filled
    assert False in filled


def test_svg_has_names_as_text():
    rc = dict(mpl.rcParams)
    svg = svg_of(hostile())
    assert dict(mpl.rcParams) == rc
    texts = {"".join(node.itertext()).strip() for node in ET.fromstring(svg).iter() if node.tag.endswith("text")}
    assert {"</svg><script> (flat)", "$\\frac{ (flat)", "漢 (flat)"} <= texts
    assert len(svg) < 40_000


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"oprag\[compare\]"):
        drawn(frame(*curve(PEAK)))


def test_matplotlib_is_loaded_when_something_is_drawn():
    code = "import sys, oprag.compare, oprag.compare.results; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def beaten(point, other):
    """Whether another point is at least as good in both, and better in one."""
    (score, cost), (other_score, other_cost) = point, other
    return other_score >= score and other_cost <= cost and (other_score > score or other_cost < cost)


@given(st.lists(st.tuples(FEW, FEW), max_size=30))
def test_the_front_is_what_no_other_point_beats(points):
    scores, costs = [score for score, _ in points], [cost for _, cost in points]
    front = pareto_front(scores, costs)
    assert sorted(front) == [n for n, point in enumerate(points) if not any(beaten(point, one) for one in points)]
    assert [costs[place] for place in front] == sorted(costs[place] for place in front)
