"""The Pareto front, against its definition tried on every pair."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.pareto import pareto_front
from oprag.errors import OptionError

FEW = st.integers(0, 6).map(float)


def beaten(point, other):
    """Whether another point is at least as good in both, and better in one."""
    (score, cost), (other_score, other_cost) = point, other
    return other_score >= score and other_cost <= cost and (other_score > score or other_cost < cost)


@given(st.lists(st.tuples(FEW, FEW), max_size=30))
def test_it_is_what_no_other_point_beats(points):
    scores, costs = [score for score, _ in points], [cost for _, cost in points]
    front = pareto_front(scores, costs)
    assert sorted(front) == [n for n, point in enumerate(points) if not any(beaten(point, one) for one in points)]
    assert [costs[place] for place in front] == sorted(costs[place] for place in front)


def test_equal_points_are_all_there():
    assert pareto_front([0.5, 0.5, 0.4], [10, 10, 10]) == [0, 1]


def test_each_score_needs_a_cost():
    with pytest.raises(OptionError, match="2 scores and 1 costs"):
        pareto_front([0.5, 0.5], [10])
