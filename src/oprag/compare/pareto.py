"""The Pareto front: what nothing else beats in both score and cost."""

from __future__ import annotations

from collections.abc import Sequence

from oprag.errors import OptionError

__all__ = ["pareto_front"]


def pareto_front(scores: Sequence[float], costs: Sequence[float]) -> list[int]:
    """Which points no other one beats: none has a score at least as high at a cost at most as high, one of them better.

    It is about the numbers as they are: two points of the front need not be shown to differ.

    Args:
        scores: The score of each point; more is better.
        costs: Its cost; less is better.

    Returns:
        The places of these points from the cheapest to the dearest; equal points are all there.

    Raises:
        OptionError: There are not as many costs as scores.

    Example:
        >>> pareto_front(scores=[0.5, 0.4, 0.7, 0.6], costs=[10, 20, 90, 40])
        [0, 3, 2]
    """
    if len(scores) != len(costs):
        raise OptionError(f"each score needs a cost, got {len(scores)} scores and {len(costs)} costs", costs)
    front: list[int] = []
    for place in sorted(range(len(scores)), key=lambda number: (costs[number], -scores[number])):
        last = front[-1] if front else None
        if last is None or scores[place] > scores[last] or (scores[place], costs[place]) == (scores[last], costs[last]):
            front.append(place)
    return front
