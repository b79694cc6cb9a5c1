import math

import numpy as np
import pytest

from oprag.compare.report.charts import Axis, histogram
from oprag.errors import OptionError
from tests.compare.report.charts.helpers import NS, axes, by_class, labels, parsed, texts, value_at

DIFFERENCE, QUESTIONS = Axis("difference of F1"), Axis("count", "questions")
EDGES = [-1, -0.5, 0, 0.5, 1]


def drawn(counts, edges=EDGES, *, title="RAG minus long context", x=DIFFERENCE, y=QUESTIONS, **options):
    return histogram(edges, counts, title=title, description="Which is better.", x=x, y=y, **options)


def test_bars_stand_between_their_edges_and_are_as_high_as_their_count():
    root = parsed(drawn({"stuff": [3, 0, 12, 7]}))
    across, upwards = axes(root)
    (bars,) = by_class(root, "oprag-bars")
    found = {}
    for bar in bars:
        x, y, wide, tall = (float(bar.get(name, 0)) for name in ("x", "y", "width", "height"))
        found[bar.findtext("svg:title", "", NS)] = (
            value_at(across, x),
            value_at(across, x + wide + 1),  # the gap between bars
            value_at(upwards, y),
            value_at(upwards, y + tall),
        )
    assert set(found) == {
        "stuff\n−1 to −0.5\n3 questions",
        "stuff\n0 to 0.5\n12 questions",
        "stuff\n0.5 to 1\n7 questions",
    }
    assert found["stuff\n−1 to −0.5\n3 questions"] == pytest.approx((-1, -0.5, 3, 0), abs=0.05)
    assert found["stuff\n0 to 0.5\n12 questions"] == pytest.approx((0, 0.5, 12, 0), abs=0.05)


def test_each_series_has_a_panel_on_the_same_axes():
    root = parsed(drawn({"stuff": [3, 0, 12, 7], "refine": [0, 1, 0, 0], "none": [0, 0, 0, 0]}))
    panels = by_class(root, "oprag-y")
    assert len({tuple(text.text for text in panel) for panel in panels}) == 1
    assert {"stuff", "refine", "none", "difference of F1", "count (questions)"} <= set(texts(root))
    first, second, third = by_class(root, "oprag-bars")
    (bar,) = second
    assert not list(third)
    same = next(other for other in first if "−1 to −0.5" in other.findtext("svg:title", "", NS))
    # One question is a third of three, measured in another panel.
    assert float(same.get("height", 0)) == pytest.approx(3 * float(bar.get("height", 0)), abs=0.3)
    assert len(labels(root, "x")) == 5


def test_counts_are_whole_on_the_axis_too():
    assert labels(parsed(drawn({"few": [1, 0, 2, 0]})), "y") == ["0", "1", "2"]
    assert labels(parsed(drawn({"none": [0, 0, 0, 0]})), "y") == ["0", "1"]


def test_it_can_be_read_aloud():
    root = parsed(drawn({"stuff": np.array([3, 0, 12, 7])}, note="22 questions."))
    assert root.findtext("svg:desc", "", NS) == (
        "Which is better. 4 bins of difference of F1 from −1 to 1. "
        "stuff: 22 in all, the highest bar (12) from 0 to 0.5. 22 questions."
    )


def test_two_hundred_series_have_a_panel_each():
    svg = drawn({f"series {n}": [n, 1, 2, 3] for n in range(200)})
    root = parsed(svg)
    assert len(by_class(root, "oprag-bars")) == 200
    assert len(svg) < 600_000


def test_without_series_it_says_so():
    assert texts(parsed(drawn({}, edges=[]))) == ["RAG minus long context", "No values."]


@pytest.mark.parametrize(
    ("edges", "counts", "message"),
    [
        ([0], [], r"edges must be two numbers or more in rising sequence, got \[0\]"),
        ([0, 1, 1], [1, 2], "in rising sequence"),
        ([0, math.nan], [1], "the value of edge 1 must be a finite number, got nan"),
        ([0, 1, 2], [1], "one for each of the 2 bins, got 1"),
        ([0, 1], [-1], "whole numbers from 0, got -1"),
        ([0, 1], [1.5], "whole numbers from 0, got 1.5"),
        ([0, 1], [True], "whole numbers from 0, got True"),
    ],
)
def test_what_cannot_be_drawn_is_refused(edges, counts, message):
    with pytest.raises(OptionError, match=message):
        drawn({"a": counts}, edges=edges)


def test_bars_begin_at_zero():
    with pytest.raises(OptionError, match="must be linear, since bars begin at 0"):
        drawn({"a": [1, 2, 3, 4]}, y=Axis("count", logarithmic=True))


def test_names_are_escaped():
    text = "</title><script>alert(1)</script>\x00"
    root = parsed(drawn({text: [1, 2, 3, 4], "b": [1, 2, 3, 4]}, x=Axis(text, text), y=Axis(text, text)))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        *("svg", "title", "desc", "g", "rect", "path", "text"),
    }
