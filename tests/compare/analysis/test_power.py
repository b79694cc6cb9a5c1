"""How small a difference the questions of an experiment can show."""

import numpy as np

from oprag.compare.analysis.power import power_of
from tests.compare.analysis.matrices import made, results_of


def scores(data, seed):
    return {f"{data} {number}": float(one) for number, one in enumerate(np.random.default_rng(seed).normal(size=20))}


def test_data_sets_are_no_axis_that_is_compared():
    cells = [made(scores(data, k), data=data, k=k) for data in ("a", "b") for k in (4, 8)]
    grid = {"data": ["a", "b"], "k": [4, 8]}
    matrix = results_of(*cells, described={"grid": [grid], "metrics": ["token_f1"]})
    told = [*power_of(matrix, {"a": 100, "b": 100})]
    assert [text.partition(":")[0] for text in told] == ["token_f1 by k of a", "token_f1 by k of b"]
    assert all("with 100 questions, differences of about" in text for text in told)
