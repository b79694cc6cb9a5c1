import math

import numpy as np
import pytest

from oprag import OptionError
from oprag.compare.setting import mean_over
from oprag.compare.stats.summary import summarise


def test_each_question_has_its_mean():
    assert mean_over([{"b": 1.0, "a": 0.0}, {"a": 0.5, "b": 0.0}, {"a": 1.0, "b": 0.5}]) == {"a": 0.5, "b": 0.5}
    assert list(mean_over([{"b": 1.0, "a": 0.0}, {"a": 0.5, "b": 0.0}])) == ["b", "a"]
    assert mean_over([{"a": 0.25}]) == {"a": 0.25}
    assert mean_over([{}, {}]) == {}


def test_seeds_are_no_questions():
    generator = np.random.default_rng(0)
    questions = generator.random(50)
    seeds = [
        {number: float(value) for number, value in enumerate(questions + 0.01 * generator.normal(size=50))}
        for _ in range(9)
    ]
    averaged = summarise(mean_over(seeds).values())
    pooled = summarise(value for values in seeds for value in values.values())
    width, pooled_width = [(one.high or 0) - (one.low or 0) for one in (averaged, pooled)]
    assert averaged.mean == pytest.approx(pooled.mean)
    # Nine seeds would seem to make the interval a third as wide.
    assert pooled_width == pytest.approx(width / 3, rel=0.1)


def test_a_question_that_a_seed_lacks_is_refused():
    with pytest.raises(OptionError, match="missing: 'b' under seed number 1; 'c' under seed number 0, 2; leave"):
        mean_over([{"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0}, {"a": 1.0, "b": 1.0}])
    with pytest.raises(OptionError, match="'q2' under seed number 1; and 7 more"):
        mean_over([{f"q{number}": 1.0 for number in range(10)}, {}])


def test_what_is_no_score_is_refused():
    with pytest.raises(OptionError, match="the value of 'a' under seed number 1 must be a finite number, got nan"):
        mean_over([{"a": 1.0}, {"a": math.nan}])
    with pytest.raises(OptionError, match="at least one seed, got none"):
        mean_over([])


def test_equal_scores_have_exactly_their_own_mean():
    scores = {number: number / 7 for number in range(50)}
    assert mean_over([scores] * 3) == scores
