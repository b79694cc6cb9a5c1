"""What `oprag.compare.report.charts` offers, and charts together in one page."""

import re
from typing import Any

import oprag.compare.report.charts
from oprag.compare.report.charts import (
    CHART_STYLE,
    Axis,
    Dot,
    Line,
    LinePoint,
    heat_map,
    histogram,
    line_chart,
    scatter_chart,
)
from oprag.compare.report.charts.palette import COLOURS
from tests.compare.report.charts.helpers import parsed
from tests.helpers import run_python

X, Y = Axis("x", "tokens"), Axis("y")
TEXTS: dict[str, Any] = {"title": "Same title", "description": "Same words."}


def page():
    return [
        line_chart([Line("a", [LinePoint(1, 1), LinePoint(2, 2)])], x=X, y=Y, **TEXTS),
        line_chart([Line("a", [LinePoint(1, 1), LinePoint(2, 3)])], x=X, y=Y, **TEXTS),
        scatter_chart([Dot(1, 1, "a")], x=X, y=Y, **TEXTS),
        heat_map(["a"], ["b"], [[1]], row_title="r", column_title="c", **TEXTS),
        histogram([0, 1], {"a": [1]}, x=X, y=Y, **TEXTS),
    ]


def test_ids_are_unique_in_a_page_and_the_same_every_time():
    ids = re.findall(r' id="([^"]+)"', "".join(page()))
    assert len(ids) == len(set(ids)) == 10
    assert page() == page()


def test_equal_input_gives_equal_output_in_every_process():
    code = (
        "from tests.compare.report.charts.test_public import page; import hashlib; "
        "print(hashlib.sha256(''.join(page()).encode()).hexdigest())"
    )
    assert len({run_python(code, PYTHONHASHSEED=seed) for seed in "12"}) == 1


def test_every_chart_is_as_wide_as_a_phone_and_its_text_legible_there():
    for svg in page():
        root = parsed(svg)
        assert (root.get("viewBox") or "").split()[2] == "360"
        sizes = {float(element.get("font-size", 12)) for element in root.iter()}
        assert min(sizes) >= 12
        assert (root.get("class"), root.get("role")) == ("oprag-chart", "img")


def test_every_colour_can_be_set_by_the_page_and_is_a_light_one_else():
    for svg in page():
        used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) - {"none"}
        assert used <= {f"var(--oprag-{name},{light})" for name, (light, _) in COLOURS.items()}
    light, dark = CHART_STYLE.split("@media (prefers-color-scheme:dark)")
    for name, (day, night) in COLOURS.items():
        assert f"--oprag-{name}:{day}" in light
        assert f"--oprag-{name}:{night}" in dark


def test_importing_it_loads_nothing_heavy():
    loaded = run_python(
        "import sys, oprag.compare.report.charts; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert not {"numpy", "pydantic", "matplotlib", "sqlite3"} & set(loaded.split())


def test_every_name_has_a_description():
    for name in oprag.compare.report.charts.__all__:
        assert getattr(oprag.compare.report.charts, name).__doc__
