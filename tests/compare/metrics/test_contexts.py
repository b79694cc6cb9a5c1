from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.metrics.functions import evidence_coverage, inverted_pairs, mrr, ndcg, recall, touching

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


def test_nothing_retrieved_and_no_evidence():
    assert evidence_coverage([], [("book", 0, 10)]) == 0
    assert evidence_coverage([("book", 0, 10)], []) is None
    assert evidence_coverage([("book", 0, 10)], [("book", 4, 4)]) is None


contexts = st.lists(st.tuples(st.sampled_from(["book", "letter", "note"]), st.integers(0, 6)), max_size=14, unique=True)


@given(contexts)
def test_it_is_the_share_of_the_pairs(context):
    pairs = [(first, second) for (source, first), (other, second) in combinations(context, 2) if source == other]
    expected = sum(first > second for first, second in pairs) / len(pairs) if pairs else None
    assert inverted_pairs(context) == expected


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
