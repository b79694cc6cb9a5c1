"""Results since earlier ones: the settings and questions that both have are compared."""

import pytest

from oprag.compare.analysis.differences import changes_since
from oprag.errors import ExperimentError
from tests.compare.analysis.matrices import made, results_of
from tests.compare.analysis.test_verdicts import scores


def changes(new, old, metric="token_f1"):
    return changes_since(results_of(*new, resamples=1_000), results_of(*old, resamples=1_000), metric)


def test_a_setting_that_became_worse_is_told_and_others_are_not():
    old = [made(scores(0.6, seed=1), order="source"), made(scores(0.5, seed=2), order="rank")]
    new = [made(scores(0.5, 0.2, seed=3), order="rank"), made(scores(0.4, seed=4), order="source")]
    rank, source = changes(new, old)
    assert rank.setting.values["order"] == "rank"
    assert not rank.difference.significantly_lower
    assert source.difference.significantly_lower
    assert source.difference.mean == pytest.approx(-0.2, abs=0.01)
    assert source.difference.comparisons == 2
    # Better is not worse.
    assert not any(one.difference.significantly_lower for one in changes(old, new))


def test_only_questions_of_both_count_whatever_their_order():
    some = scores(0.5)
    names = list(some)
    old = {name: some[name] + 0.1 for name in reversed(names[4:])}
    (told,) = changes([made(some)], [made({**old, "gone": 9.0})])
    assert told.difference.n == len(names) - 4
    assert told.difference.mean == pytest.approx(-0.1)


def test_settings_of_one_alone_are_left_out_and_nothing_in_common_is_refused():
    old = [made(scores(0.5), k=4), made(scores(0.5), k=8)]
    assert [one.setting.values["k"] for one in changes([made(scores(0.4), k=8), made(scores(0.4), k=9)], old)] == [8]
    with pytest.raises(ExperimentError, match="no setting of 'x'"):
        changes([made(scores(0.5), k=16)], old)
    with pytest.raises(ExperimentError, match="no question has scores for token_f1 in both"):
        changes([made({"other": 0.5}, k=4)], old)
    with pytest.raises(ExperimentError, match="no question has scores for rouge_l in both"):
        changes_since(results_of(*old, metric="rouge_l"), results_of(*old), "rouge_l")
