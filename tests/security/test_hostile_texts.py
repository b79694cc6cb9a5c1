"""Texts of documents, data sets and models: none may take time that grows faster than its length."""

import gzip
import random
import time

import pytest

from oprag.compare import read_data
from oprag.compare.data.formats import html_text
from oprag.compare.metrics.functions import rouge_l
from oprag.compare.results import write_csv as export_csv
from oprag.errors import OpragError
from tests.compare.data.writing import write_csv


@pytest.fixture(autouse=True)
def soon():
    """Far more than each takes on a slow machine, and far less than it took before."""
    start = time.process_time()
    yield
    assert time.process_time() - start < 20


def test_white_space_before_a_line_of_sources(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("The harbour has nine cranes.")
    for space in ("\n" * 30_000, " " * 30_000, "\n \t" * 10_000, "SOURCE\n" * 5_000):
        path = write_csv(tmp_path / "q.csv", ("Question", "Answer"), ("How many?", f"Nine.{space}."))
        assert len(read_data(path, "kg_rag", source_line=False).questions) == 1


@pytest.mark.parametrize("unit", ["<p ", "<b a=", "<a href='", "<!--", "<!", "<![", "<?", "</p", "&#", "<script>"])
def test_html_whose_tags_have_no_end(unit):
    assert html_text(f"<p>Nine cranes.</p>{unit * 30_000}").startswith("Nine cranes.")


@pytest.mark.parametrize(
    ("line", "message"),
    [(b"\n", "more than 100,000 lines"), (b"{}\n", "line 1: question is missing"), (b"x\n", "line 1: invalid JSON")],
)
def test_a_small_file_of_many_lines(tmp_path, monkeypatch, line, message):
    monkeypatch.setenv("OPRAG_MAX_LINES", "100_000")
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress(line * 100_100, 1))
    with pytest.raises(OpragError, match=message):
        read_data(path, "oprag")


@pytest.mark.parametrize("section", ["<![if !IE]>", "<![own[a]]>", "<![ ]>", "<![CDATA[a]]>"])
def test_marked_sections_are_comments(section):
    assert html_text(f"<p>Nine{section} cranes.</p>") == "Nine cranes."


def test_an_answer_that_is_nearly_a_number(tmp_path):
    number = f"-{'1' * 100_000}"
    export_csv(tmp_path / "a.csv", [{"answer": number}, {"answer": f"{number}x"}])
    assert (tmp_path / "a.csv").read_text() == f"answer\n{number}\n'{number}x\n"


def test_answers_of_twelve_thousand_words():
    words = [f"w{number}" for number in range(12_000)]
    kept = [word for number, word in enumerate(words) if number % 3]
    assert rouge_l(" ".join(kept), [" ".join(words)]) == pytest.approx(2 * len(kept) / (len(kept) + len(words)))
    assert rouge_l(" ".join(reversed(words)), [" ".join(words)]) == pytest.approx(1 / len(words))
    few = " ".join(random.Random(1).choices("ab", k=12_000))
    assert rouge_l(few, [few]) == 1
