import pytest

from oprag.compare.experiment_methods import CONTROLS
from oprag.compare.grid import axes, check_axis, has_effect
from oprag.errors import OptionError
from oprag.methods.registry import OUR_METHODS

DEFAULTS = {name: axis.default for name, axis in axes().items()}
OPTIONS = {name for name, axis in axes().items() if axis.part == "method"}


def effective(**values):
    return {name for name in axes() if has_effect(name, {**DEFAULTS, **values})}


@pytest.mark.parametrize("option", sorted(OPTIONS - {"method"}))
def test_a_method_of_the_users_own_may_read_every_option(option):
    assert option in effective(method="mine")
    assert option in effective(method="step_down", inner_method="mine")


@pytest.mark.parametrize("method", [*OUR_METHODS, *CONTROLS])
def test_what_needs_another_value(method):
    plain = effective(method=method, order="rank")
    assert plain.isdisjoint({"seed", "source_ranking", "min_chunks"})
    reads = "k" in plain
    assert ("seed" in effective(method=method, order="random")) == reads
    assert ("source_ranking" in effective(method=method, order="source")) == reads
    assert ("min_chunks" in effective(method=method, redundancy_threshold=0.9)) == reads


@pytest.mark.parametrize("axis", ["ordr", "seed", "repeat"])
def test_an_axis_that_cannot_be_compared_is_refused(axis):
    with pytest.raises(OptionError, match="axis"):
        check_axis(axis)
