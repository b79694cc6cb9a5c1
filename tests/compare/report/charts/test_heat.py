import math

import pytest

from oprag.compare.report.charts import heat_map
from oprag.errors import OptionError
from tests.compare.report.charts.helpers import NS, by_class, parsed, places, size, texts

ROWS, COLUMNS = ["0.5", "0.7"], ["0.8", "0.9", "1.0"]
VALUES: list[list[float | None]] = [[0.1, 0.2, None], [0.3, 0.5, 0.4]]


def drawn(rows=ROWS, columns=COLUMNS, values=VALUES, *, title="F1", row_title="similarity", **options):
    return heat_map(
        rows,
        columns,
        values,
        title=title,
        description="Two.",
        row_title=row_title,
        column_title="redundancy",
        **options,
    )


def cells(root):
    """Where each cell is and how strong its colour, by the tooltip."""
    (group,) = by_class(root, "oprag-cells")
    return {
        rect.findtext("svg:title", "", NS): {name: float(rect.get(name, 0)) for name in ("x", "y", "fill-opacity")}
        for rect in group
    }


def test_cells_stand_in_rows_and_columns_and_say_their_value():
    found = cells(parsed(drawn()))
    assert set(found) == {
        f"similarity {row}\nredundancy {column}\n{value:.2f}"
        for row, values in zip(ROWS, VALUES, strict=True)
        for column, value in zip(COLUMNS, values, strict=True)
        if value is not None
    }
    at = {tuple(tip.split("\n")[:2]): cell for tip, cell in found.items()}
    assert [at["similarity 0.7", f"redundancy {c}"]["x"] for c in COLUMNS] == sorted(
        at["similarity 0.7", f"redundancy {c}"]["x"] for c in COLUMNS
    )
    assert at["similarity 0.5", "redundancy 0.8"]["y"] < at["similarity 0.7", "redundancy 0.8"]["y"]
    assert at["similarity 0.5", "redundancy 0.8"]["x"] == at["similarity 0.7", "redundancy 0.8"]["x"]


def test_the_higher_the_value_the_stronger_the_colour_in_proportion():
    found = {float(tip.split("\n")[2]): cell["fill-opacity"] for tip, cell in cells(parsed(drawn())).items()}
    low, high = found[0.1], found[0.5]
    assert 0 < low < high < 1
    for value, opacity in found.items():
        assert (opacity - low) / (high - low) == pytest.approx((value - 0.1) / 0.4, abs=0.005)


def test_values_are_written_in_the_cells_with_names_and_a_key():
    root = parsed(drawn(show="{:.0%}", note="Means."))
    (values,) = by_class(root, "oprag-values")
    assert [text.text for text in values] == ["10%", "20%", "–", "30%", "50%", "40%"]
    assert {*ROWS, *COLUMNS, "↓ similarity", "→ redundancy", "10%", "50%", "Means."} <= set(texts(root))


def test_a_cell_without_a_value_is_empty_and_says_so():
    (empty,) = by_class(parsed(drawn()), "oprag-none")
    (cell,) = empty
    assert cell.findtext("svg:title", "", NS) == "similarity 0.5\nredundancy 1.0\n–"
    assert cell.get("fill-opacity") is None


def test_it_can_be_read_aloud():
    root = parsed(drawn())
    assert root.findtext("svg:desc", "", NS) == (
        "Two. 2 rows (similarity), 3 columns (redundancy). Lowest: 0.10 at similarity 0.5, redundancy 0.8. "
        "Highest: 0.50 at similarity 0.7, redundancy 0.9."
    )


@pytest.mark.parametrize("value", [0.3, -2, 1e-320, 1e300])
def test_values_that_are_all_alike_have_one_colour(value):
    found = cells(parsed(drawn(values=[[value] * 3] * 2, show="{:.3g}")))
    assert len({cell["fill-opacity"] for cell in found.values()}) == 1


def test_a_large_map_leaves_the_values_to_tooltips():
    rows, columns = [f"row {n}" for n in range(100)], [f"column {n}" for n in range(50)]
    svg = drawn(rows, columns, [[x * y / 10 for x in range(50)] for y in range(100)])
    root = parsed(svg)
    assert len(cells(root)) == 5000
    assert not list(by_class(root, "oprag-values")[0])
    width, height = size(root)
    assert all(-0.1 <= x <= width and -0.1 <= y <= height for x, y in places(root))
    assert len(svg) < 800_000


def test_long_names_are_broken_or_clipped_and_whole_in_the_tooltip():
    name = "sentence-transformers/multi-qa-mpnet-base-dot-v1 with a prefix and a suffix"
    root = parsed(drawn([name, "b"], [name, "c"], [[1, 2], [3, 4]]))
    titles = {title.text for title in root.iterfind(".//svg:g/svg:title", NS)}
    assert name in titles
    assert name not in texts(root)
    assert any(text.startswith("sentence-") for text in texts(root))


@pytest.mark.parametrize(("rows", "columns", "values"), [([], [], []), (["a"], [], [[]]), (["a"], ["b"], [[None]])])
def test_without_values_it_says_so(rows, columns, values):
    assert texts(parsed(drawn(rows, columns, values))) == ["F1", "No values."]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"values": [[1, 2, 3]]}, r"values must have 2 rows of 3 values, as there are names, got 1 of \[3\]"),
        ({"values": [[1, 2], [1, 2]]}, r"2 rows of 3 values, as there are names, got 2 of \[2\]"),
        ({"values": [[1, math.nan, 3], [1, 2, 3]]}, "row '0.5' and column '0.9' must be a finite number, got nan"),
        ({"rows": ["a", 3]}, "the name of row 1 must be a string, got 3"),
        ({"row_title": None}, "row_title must be a string, got None"),
        ({"show": "{:d}"}, "show must be a format for one number"),
        ({"show": "{} {}"}, "show must be a format for one number"),
        ({"show": "{a.b}"}, "show must be a format for one number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(given, message):
    with pytest.raises(OptionError, match=message):
        drawn(**given)


def test_names_are_escaped():
    text = "</title><script>alert(1)</script>\x00"
    root = parsed(drawn([text, "b"], [text, text, text], title=text, row_title=text, show="<b>{}&"))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "title", "desc", "g", "rect", "text"}
