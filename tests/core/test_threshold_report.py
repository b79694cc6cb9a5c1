import math

import numpy as np
import pytest

from oprag import Chunk, EmbeddingError, QueryError, build_context
from oprag.assembly.threshold_report import report_thresholds
from tests.helpers import hit


def context(*degrees: float):
    """A context of chunks whose vectors stand at these angles to the question, best first."""
    chunks = []
    for rank, one in enumerate(degrees):
        angle = np.deg2rad(one)
        vector = np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
        chunks.append(Chunk(**{**vars(hit(f"text {rank}", rank, chunk_index=rank)), "vector": vector}))
    question = np.array([3.0, 0.0], dtype=np.float32)
    return build_context(chunks, question_vector=question, similarity_threshold=-1)


def cosine(degrees: float) -> float:
    return math.cos(math.radians(degrees))


def test_the_report_has_the_cosines_of_all_questions():
    report = report_thresholds([context(10, 30, -30), context(20, 21)], "my-model")
    assert [cosines.tolist() for cosines in report.similarities] == [
        pytest.approx([cosine(10), cosine(30), cosine(-30)], abs=1e-6),
        pytest.approx([cosine(20), cosine(21)], abs=1e-6),
    ]
    assert [cosines.tolist() for cosines in report.nearest] == [
        pytest.approx([cosine(20), cosine(40)], abs=1e-6),
        pytest.approx([cosine(1)], abs=1e-6),
    ]
    # At 0.9 of cosine, which is 25.8 degrees, 30 repeats 10, and 21 repeats 20.
    assert report.kept[-1] == 3
    assert report.kept[0] == 2


def test_the_suggestions_drop_a_quarter_and_a_twentieth():
    report = report_thresholds([context(*range(0, 80, 4))])
    similarities = np.concatenate(report.similarities)
    assert 0.2 <= (similarities < report.similarity_threshold).mean() <= 0.25
    assert report.redundancy_threshold == 1.0
    spread = report_thresholds([context(*range(0, 340, 20), 1)])
    repeated = np.concatenate(spread.nearest) >= spread.redundancy_threshold - 0.01
    assert repeated.sum() == 1


def test_the_suggestion_empties_no_context():
    report = report_thresholds([context(*range(10, 50)), context(80.0)])
    assert report.similarity_threshold <= cosine(80)
    again = [
        one.with_thresholds(similarity_threshold=report.similarity_threshold) for one in (context(12), context(80.0))
    ]
    assert all(one.kept for one in again)


def test_the_report_is_a_table_with_the_name_of_the_embedder():
    report = report_thresholds([context(10, 30, -30), context(20, 21)], "my-model")
    assert repr(report) == "ThresholdReport('my-model', 2 questions, 5 retrieved chunks)"
    text = str(report)
    lines = text.splitlines()
    assert lines[0] == "my-model: 2 questions, 5 retrieved chunks"
    assert "the question" in lines[3]
    assert lines[3].split()[-7:] == ["0.866", "0.866", "0.866", "0.934", "0.940", "0.976", "0.985"]
    assert "contexts that it empties" in text
    assert "suggested: similarity_threshold=0.86" in text


def test_a_single_chunk_says_nothing_about_redundancy():
    report = report_thresholds([context(10)])
    assert report.redundancy_threshold == 1.0
    assert "-" in str(report)


def test_empty_contexts_say_nothing():
    assert len(report_thresholds([build_context([]), context(10)]).similarities) == 1
    with pytest.raises(QueryError, match="no chunks were retrieved for any question"):
        report_thresholds([build_context([])])
    with pytest.raises(QueryError, match="no chunks were retrieved for any question"):
        report_thresholds([])


def test_contexts_without_vectors_are_refused():
    with pytest.raises(EmbeddingError, match="retrieve with similarity_threshold=-1"):
        report_thresholds([build_context([hit("text", 0, chunk_index=0)])])
