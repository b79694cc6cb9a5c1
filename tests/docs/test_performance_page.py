"""The figures on the performance page are those of the benchmark pages that it links to."""

import re

import pytest

from tests.reader import ROOT

DOCS = ROOT / "docs"
ROWS = [
    (line.rpartition("[")[0], linked)
    for line in re.split(r"\n(?=\|)|\n\n", (DOCS / "performance.md").read_text(encoding="utf-8"))
    if (linked := re.findall(r"\]\((benchmarks/\w+\.md)#", line))
]


def test_the_page_has_figures_of_each_kind():
    assert {page for _, pages in ROWS for page in pages} == {
        f"benchmarks/{name}.md" for name in ("agents", "answering", "assembly", "comparing", "thresholds")
    }


@pytest.mark.parametrize(("text", "pages"), ROWS, ids=[text[:60] for text, _ in ROWS])
def test_each_figure_is_on_the_benchmark_page(text, pages):
    shown = re.findall(r"(?<![\w.,])\d[\d,]*\.\d+|(?<![\w.,])\d[\d,]*(?= (?:ms|s|MB)\b)", text)
    assert shown
    (page,) = set(pages)
    numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", (DOCS / page).read_text(encoding="utf-8")))
    assert [figure for figure in shown if figure not in numbers] == []
