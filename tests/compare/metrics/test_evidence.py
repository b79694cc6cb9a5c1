import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.compare.metrics import evidence_coverage

Spans = list[tuple[str, int, int]]
spans_of = st.lists(
    st.tuples(st.sampled_from(["book", "letter"]), st.integers(0, 30), st.integers(0, 12)).map(
        lambda span: (span[0], span[1], span[1] + span[2])
    ),
    max_size=8,
)


def characters(spans: Spans) -> set[tuple[str, int]]:
    return {(document, place) for document, start, end in spans for place in range(start, end)}


@given(spans_of, spans_of)
def test_it_is_the_share_of_the_set_of_characters(spans, evidence):
    gold = characters(evidence)
    expected = len(gold & characters(spans)) / len(gold) if gold else None
    assert evidence_coverage(spans, evidence) == expected


@given(spans_of, spans_of, spans_of)
def test_more_spans_never_cover_less(spans, more, evidence):
    coverage = evidence_coverage(spans, evidence)
    if coverage is not None:
        assert coverage <= (evidence_coverage(spans + more, evidence) or 0)
        assert coverage == evidence_coverage([*reversed(spans), *spans], evidence[::-1])


def test_spans_of_other_documents_do_not_count():
    assert evidence_coverage([("letter", 0, 100)], [("book", 0, 100)]) == 0


def test_nothing_retrieved_and_no_evidence():
    assert evidence_coverage([], [("book", 0, 10)]) == 0
    assert evidence_coverage([("book", 0, 10)], []) is None
    assert evidence_coverage([("book", 0, 10)], [("book", 4, 4)]) is None


def test_offsets_of_numpy_are_whole_numbers():
    assert evidence_coverage([("book", np.int64(0), np.int64(5))], [("book", 0, 10)]) == 0.5  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("span", "message"),
    [
        (("book", -1, 3), "0 <= start <= end"),
        (("book", 3, 2), "0 <= start <= end"),
        (("book", 0.0, 2), "whole numbers as offsets"),
        (("book", 0, None), "whole numbers as offsets"),
        (("book", 0), "whole numbers as offsets"),
        (7, "whole numbers as offsets"),
    ],
)
def test_what_is_no_span_is_refused(span, message):
    with pytest.raises(OptionError, match=f"spans must .*{message}"):
        evidence_coverage([span], [("book", 0, 1)])
    with pytest.raises(OptionError, match=f"evidence must .*{message}"):
        evidence_coverage([("book", 0, 1)], [span])


def test_seven_thousand_spans_take_no_square():
    spans = [("book", 10 * number, 10 * number + 7) for number in range(7000)]
    assert evidence_coverage(spans, [("book", 0, 70_000)]) == pytest.approx(0.7)
