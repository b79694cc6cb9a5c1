import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from oprag._internal.masking import describe
from oprag.errors import OptionError
from oprag.methods import MethodOptions
from oprag.methods.options import as_method_options
from tests.option_values import BAD_FOR_METHODS, GOOD_FOR_METHODS, cases


def test_every_option_is_here():
    names = {field.name for field in dataclasses.fields(MethodOptions)} - {"prompts"}
    assert names == set(BAD_FOR_METHODS) == set(GOOD_FOR_METHODS)


@pytest.mark.parametrize(("name", "value"), cases(BAD_FOR_METHODS))
def test_wrong_values_are_refused(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be") as caught:
        MethodOptions(**{name: value})
    assert caught.value.value is value
    assert describe(value) in str(caught.value)


@pytest.mark.parametrize(("name", "value"), cases(GOOD_FOR_METHODS))
def test_right_values_are_taken(name, value):
    taken = getattr(MethodOptions(**{name: value}), name)
    assert taken == value
    assert not isinstance(taken, np.generic | Fraction)


def test_every_option_is_described():
    for field in dataclasses.fields(MethodOptions):
        assert field.metadata["help"].endswith("."), field.name


def test_options_are_given_by_name_and_do_not_change():
    with pytest.raises(TypeError):
        MethodOptions("refine")  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        MethodOptions().method = "refine"  # type: ignore[misc]
    assert hash(MethodOptions(variants=2)) == hash(MethodOptions(variants=2))
    assert MethodOptions(variants=2) == MethodOptions(variants=2)


@pytest.mark.parametrize(("name", "hint"), [("varaints", "did you mean 'variants'"), ("zzz", "expected one of method")])
def test_an_unknown_option_is_refused(name, hint):
    with pytest.raises(OptionError, match=f"unknown option '{name}'; {hint}"):
        as_method_options(None, {name: 1})
