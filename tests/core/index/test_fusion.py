import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from oprag.index.fusion import rrf


def test_the_formula_of_the_paper():
    # Ranks count from 1, and the constant is 60.
    assert rrf([[2, 0, 1]], 4).tolist() == [1 / 62, 1 / 63, 1 / 61, 0.0]
    np.testing.assert_allclose(rrf([[0, 1], [1, 0], [0]], 2), [1 / 61 + 1 / 62 + 1 / 61, 1 / 62 + 1 / 61], rtol=1e-15)


rankings = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(
            st.permutations(range(count)).flatmap(lambda order: st.integers(0, count).map(lambda n: order[:n])),
            max_size=5,
        ),
    )
)


@given(rankings)
def test_it_is_the_sum_of_reciprocal_ranks(given_rankings):
    count, lists = given_rankings
    expected = [
        math.fsum(1 / (61 + ranking.index(item)) for ranking in lists if item in ranking) for item in range(count)
    ]
    np.testing.assert_allclose(rrf(lists, count), expected, rtol=1e-12)


@given(st.lists(st.integers(0, 200), min_size=3, max_size=3, unique=True))
def test_the_same_ranks_in_other_rankings_tie_exactly(ranks):
    # Added up as they come, the last bit of a sum depends on the sequence.
    lists = []
    for first, second in zip(ranks, [*ranks[1:], ranks[0]], strict=True):
        ranking = list(range(2, 203))
        for place, item in sorted([(first, 0), (second, 1)]):
            ranking.insert(place, item)
        lists.append(ranking)
    one, other, *_ = rrf(lists, 203)
    assert one == other


def test_nothing_to_fuse():
    assert rrf([], 3).tolist() == [0.0, 0.0, 0.0]
    assert rrf([[]], 0).tolist() == []
