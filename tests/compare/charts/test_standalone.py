import re
import xml.etree.ElementTree as ET

import pytest

from oprag.compare.charts import Axis, Dot, as_file, scatter_chart
from oprag.compare.charts.palette import COLOURS
from oprag.errors import OptionError
from tests.compare.charts.helpers import NS, size

HOSTILE = 'fill="var(--oprag-1,#000000)" viewBox="0 0 1 1" width="1" height="1" </desc>\n'
CHART = scatter_chart([Dot(1, 2, HOSTILE, HOSTILE)], title=HOSTILE, description=HOSTILE, x=Axis("x"), y=Axis("y"))


def test_a_file_has_a_background_and_a_margin_around_all_that_is_drawn():
    root = ET.fromstring(as_file(CHART))
    before, after = size(ET.fromstring(CHART)), size(root)
    assert after == (before[0] + 24, before[1] + 24)
    page = root.find("svg:rect", NS)
    assert page is not None
    assert [float(page.get(name, 0)) for name in ("x", "y", "width", "height")] == [-12, -12, *after]
    assert len(list(root)) == len(list(ET.fromstring(CHART))) + 2


def test_it_follows_the_system():
    style = ET.fromstring(as_file(CHART)).findtext("svg:style", "", NS)
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    for name, (day, night) in COLOURS.items():
        assert f"--oprag-{name}:{day}" in light
        assert f"--oprag-{name}:{night}" in dark


@pytest.mark.parametrize(("theme", "number"), [("light", 0), ("dark", 1)])
def test_plain_colours_need_no_browser(theme, number):
    svg = as_file(CHART, theme)
    root = ET.fromstring(svg)
    used = {element.get(name) for element in root.iter() for name in ("fill", "stroke")} - {None, "none"}
    assert used <= {pair[number] for pair in COLOURS.values()}
    # Text of others stays as it is.
    assert root.findtext("svg:title", "", NS) == HOSTILE
    assert "<style" not in svg


def test_nothing_comes_from_elsewhere():
    for svg in (CHART, as_file(CHART), as_file(CHART, "dark")):
        assert re.findall(r"https?://[^\"\s]+", svg) == ["http://www.w3.org/2000/svg"]
        assert "<script" not in svg


@pytest.mark.parametrize("chart", ["", "<svg/>", "<svg></desc>\n"])
def test_what_is_no_chart_is_refused(chart):
    with pytest.raises(OptionError, match=r"must be a picture that a function of oprag\.compare\.charts gave"):
        as_file(chart)


def test_an_unknown_theme_is_refused():
    with pytest.raises(OptionError, match="theme must be one of system, light, dark, got 'blue'"):
        as_file(CHART, "blue")  # type: ignore[arg-type]
