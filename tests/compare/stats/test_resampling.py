import math
from itertools import product

import numpy as np
import pytest

from oprag.compare.stats import max_t_p_values
from tests.compare.stats.oracles import holm

"""The last ones do not fit one block."""


def by_hand(sums):
    """Step-down maxT of all sign patterns, one after another."""
    scale = [math.sqrt(math.fsum(value**2 for value in column)) for column in sums.T]
    observed = [abs(math.fsum(column)) / size for column, size in zip(sums.T, scale, strict=True)]
    order = sorted(range(len(observed)), key=lambda number: -observed[number])
    found, so_far = dict.fromkeys(order, 1.0), 0.0
    for place, number in enumerate(order):
        as_far = 0
        for signs in product([1, -1], repeat=len(sums)):
            rest = order[place:]
            drawn = [abs(math.fsum(np.array(signs) * sums[:, other])) / scale[other] for other in rest]
            as_far += max(drawn) >= observed[number] - 1e-9
        so_far = max(so_far, as_far / 2 ** len(sums))
        found[number] = so_far
    return [found[number] for number in range(len(observed))]


@pytest.mark.parametrize("seed", range(5))
def test_comparisons_are_corrected_together_as_by_hand(seed):
    sums = np.random.default_rng(seed).normal([0.0, 0.5, 1.0, 0.2], 1, size=(7, 4))
    assert max_t_p_values(sums, 1_000).tolist() == pytest.approx(by_hand(sums))


def test_the_correction_is_no_harder_than_holms():
    sums = np.random.default_rng(3).normal(0.5, 1, size=(12, 6))
    alone = {number: float(max_t_p_values(sums[:, [number]], 10_000)[0]) for number in range(6)}
    together = max_t_p_values(sums, 10_000)
    assert all(alone[number] <= together[number] <= holm(alone)[number] + 0.01 for number in range(6))


def test_one_wrong_claim_in_twenty_families_that_have_nothing_to_claim():
    draw = np.random.default_rng(4)
    wrong = sum(bool((max_t_p_values(draw.normal(size=(25, 8)), 400) < 0.05).any()) for _ in range(400))
    # 20 of them, give or take twice their standard error.
    assert 10 <= wrong <= 30
