"""The figures on the performance page are those of the benchmark pages that it links to."""

import re

import pytest

from tests.reader import ROOT

DOCS = ROOT / "docs"
_, *SECTIONS = re.split(r"^## ", (DOCS / "performance.md").read_text(encoding="utf-8"), flags=re.MULTILINE)


def linked(section):
    """The benchmark pages to which a section links."""
    return set(re.findall(r"\]\((benchmarks/\w+\.md)#", section))


def test_the_page_has_figures_of_each_kind():
    assert {page for section in SECTIONS for page in linked(section)} == {
        f"benchmarks/{name}.md" for name in ("agents", "answering", "assembly", "comparing", "thresholds")
    }


@pytest.mark.parametrize("section", SECTIONS, ids=[one.partition("\n")[0] for one in SECTIONS])
def test_each_figure_is_on_the_benchmark_page(section):
    shown = re.findall(r"(?<![\w.,])\d[\d,]*\.\d+|(?<![\w.,])\d[\d,]*(?= (?:ms|s|MB)\b)", section)
    assert shown
    (page,) = linked(section)
    numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", (DOCS / page).read_text(encoding="utf-8")))
    assert [figure for figure in shown if figure not in numbers] == []
