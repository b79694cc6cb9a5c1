"""The best setting: which it is, and whether that is shown."""

from typing import Any

import numpy as np

from oprag.compare.analysis.best import Best, best_of
from tests.compare.analysis.matrices import frame, made


def best(*cells, metric="token_f1") -> Best:
    return best_of(frame(*cells).settings, metric)


def scores(mean, *, seed=0, questions=40) -> Any:
    draw = np.random.default_rng(seed)
    return {str(n): mean + n / 100 + float(draw.normal(0, 0.05)) for n in range(questions)}


def test_the_highest_is_shown_where_every_other_is_far_behind():
    found = best(made(scores(0.2), k=4), made(scores(0.5, seed=1), k=8), made(scores(0.4, seed=2), k=8, order="rank"))
    assert found.significant
    assert (found.setting.values["k"], found.setting.values["order"]) == (8, "source")
    assert found.rivals == ()
    assert [other.baseline.values["k"] for other in found.others] == [8, 4]
    text = found.describe()
    assert text.startswith("k=8, source has the highest token_f1, 0.")
    assert (
        "significantly better than 2 of 2 others (p corrected for 2 comparisons); the closest is k=8, rank (+0." in text
    )


def test_the_highest_is_not_shown_where_another_is_near():
    found = best(*(made(scores(0.5, seed=seed), k=seed + 1) for seed in range(6)), made(scores(0.1), k=9))
    assert not found.significant
    assert len(found.rivals) == 5
    assert found.others[-1].difference.significantly_higher
    assert "significantly better than 1 of 6 others (p corrected for " in found.describe()


def test_one_setting_has_nothing_beside_it():
    found = best(made(scores(0.5), k=8))
    assert not found.significant
    assert found.describe().endswith("n = 40; there is nothing to compare it with")
