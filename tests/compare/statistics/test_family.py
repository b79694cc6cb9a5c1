import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.compare.statistics import holm

p_values = st.lists(st.floats(0, 1).map(lambda value: round(value, 3)), max_size=12)


@given(p_values, st.sampled_from([0.01, 0.05, 0.1, 0.5]))
def test_it_claims_what_the_steps_of_holm_claim(values, level):
    # From the smallest on: while p <= level / how many are left, claim it; at the first that is not, stop.
    claimed = set()
    for place, key in enumerate(sorted(range(len(values)), key=lambda key: values[key])):
        if values[key] * (len(values) - place) > level:
            break
        claimed.add(key)
    adjusted = holm(dict(enumerate(values)))
    assert {key for key, value in adjusted.items() if value <= level} == claimed


@given(p_values)
def test_it_only_raises_and_keeps_keys_and_sequence(values):
    adjusted = holm(dict(enumerate(values)))
    assert list(adjusted) == list(range(len(values)))
    assert all(value <= adjusted[key] <= 1 for key, value in enumerate(values))
    for first, one in enumerate(values):
        for second, other in enumerate(values):
            if one <= other:
                assert adjusted[first] <= adjusted[second]


def test_a_family_of_one_or_none():
    assert holm({"only": 0.03}) == {"only": 0.03}
    assert holm({}) == {}


@pytest.mark.parametrize("bad", [-0.1, 1.1])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(OptionError, match=r"p-values must be from 0 to 1, got .* for 'b'"):
        holm({"a": 0.5, "b": bad})


@pytest.mark.parametrize("bad", [None, math.nan])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(OptionError, match="the value of 'a' must be a finite number"):
        holm({"a": bad})
