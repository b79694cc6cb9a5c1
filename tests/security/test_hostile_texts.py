"""Texts of documents, data sets and models: none may take time that grows faster than its length."""

import random
import time

import pytest

from oprag.compare.data import read_data
from oprag.compare.metrics import rouge_l
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


def test_answers_of_twenty_thousand_words():
    words = [f"w{number}" for number in range(20_000)]
    kept = [word for number, word in enumerate(words) if number % 3]
    assert rouge_l(" ".join(kept), [" ".join(words)]) == pytest.approx(2 * len(kept) / (len(kept) + len(words)))
    assert rouge_l(" ".join(reversed(words)), [" ".join(words)]) == pytest.approx(1 / len(words))
    few = " ".join(random.Random(1).choices("ab", k=20_000))
    assert rouge_l(few, [few]) == 1
