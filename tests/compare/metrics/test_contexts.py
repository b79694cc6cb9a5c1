import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag import OptionError
from oprag.compare.metrics import evidence_coverage, inverted_pairs, mrr, ndcg, recall
from oprag.compare.metrics.contexts import touching

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
        (("book", 0.0, 2), "integers as offsets"),
        (("book", 0, None), "integers as offsets"),
        (("book", 0), "integers as offsets"),
        (7, "integers as offsets"),
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


contexts = st.lists(
    st.tuples(st.sampled_from(["book", "letter", "note"]), st.none() | st.integers(0, 6)),
    max_size=14,
)


@given(contexts)
def test_it_is_the_share_of_the_pairs(context):
    pairs = [
        (first, second)
        for (source, first), (other, second) in combinations(context, 2)
        if source == other and first is not None and second is not None and first != second
    ]
    expected = sum(first > second for first, second in pairs) / len(pairs) if pairs else None
    assert inverted_pairs(context) == expected


@given(contexts)
def test_the_reverse_has_the_other_pairs(context):
    share = inverted_pairs(context)
    reverse = inverted_pairs(context[::-1])
    if share is None:
        assert reverse is None
    else:
        assert share + (reverse or 0) == pytest.approx(1)


def test_source_order_and_its_reverse():
    context = [("book", 1), ("letter", 0), ("book", 5), ("letter", 9)]
    assert inverted_pairs(context) == 0
    assert inverted_pairs(context[::-1]) == 1


def test_chance_is_at_one_half_also_with_ties():
    generator = random.Random(0)
    shares = [inverted_pairs([("book", generator.randrange(5)) for _ in range(20)]) or 0 for _ in range(2000)]
    assert sum(shares) / len(shares) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    "context", [[], [("book", 1)], [("book", 1), ("letter", 2)], [("book", 1), ("book", 1)], [("book", None)] * 3]
)
def test_without_a_pair_there_is_no_share(context):
    assert inverted_pairs(context) is None


def test_positions_may_be_anything_that_can_be_compared():
    assert inverted_pairs([("book", (2, "b")), ("book", (2, "a")), ("book", (1, "z"))]) == 1
    assert inverted_pairs([("book", "iv"), ("letter", 3), ("book", "v")]) == 0


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([("book", 1), ("book", "one")], "positions of one source must be comparable, in 'book'"),
        ([("book",)], "positions must be pairs"),
        ([3], "positions must be pairs"),
    ],
)
def test_what_has_no_order_is_refused(context, message):
    with pytest.raises(OptionError, match=message):
        inverted_pairs(context)


def test_many_chunks_take_no_square():
    compared = 0

    class Counting(float):
        def __lt__(self, other: float) -> bool:
            nonlocal compared
            compared += 1
            return float(self) < other

    generator = random.Random(0)
    inverted_pairs([("book", Counting(generator.random())) for _ in range(4_000)])
    # About 12 for each chunk; the square would be 4,000 for each.
    assert 4_000 < compared < 30 * 4_000


@given(spans_of, spans_of)
def test_relevant_spans_have_a_character_of_the_evidence(spans, evidence):
    gold = characters(evidence)
    expected = {place for place, span in enumerate(spans) if characters([span]) & gold}
    assert touching(spans, evidence) == expected


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 40), unique=True, max_size=30),
    st.sets(st.integers(0, 40), min_size=1, max_size=20),
    st.integers(1, 40),
)
def test_they_are_those_of_trec_eval(ranked, relevant, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    # trec_eval sorts by score, and knows nothing of a question for which nothing is retrieved.
    run = {str(chunk): -float(rank) for rank, chunk in enumerate(ranked)} or {"nothing": 0.0}
    judged = {"question": {str(chunk): 1 for chunk in relevant}}
    wanted = {f"recall.{k}", "recip_rank", "ndcg", f"ndcg_cut.{k}"}
    (found,) = pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate({"question": run}).values()
    assert recall(ranked[:k], relevant) == pytest.approx(found[f"recall_{k}"], abs=1e-9)
    assert mrr(ranked, relevant) == pytest.approx(found["recip_rank"], abs=1e-9)
    assert ndcg(ranked, relevant) == pytest.approx(found["ndcg"], abs=1e-9)
    assert ndcg(ranked[:k], relevant, k) == pytest.approx(found[f"ndcg_cut_{k}"], abs=1e-9)
    assert ndcg(ranked, relevant, k) == ndcg(ranked[:k], relevant, k)


def test_where_nothing_is_relevant_retrieval_has_no_score():
    assert [metric([1, 2], set()) for metric in (recall, mrr, ndcg)] == [None, None, None]
    assert [metric([], {1}) for metric in (recall, mrr, ndcg)] == [0, 0, 0]


@pytest.mark.parametrize("metric", [recall, mrr, ndcg])
def test_a_chunk_that_is_retrieved_twice_is_refused(metric):
    with pytest.raises(OptionError, match="ranked must not contain duplicates"):
        metric([1, 2, 1], {1})


def test_a_k_below_one_is_refused():
    with pytest.raises(OptionError, match="k must be at least 1, got 0"):
        ndcg([1], {1}, 0)
