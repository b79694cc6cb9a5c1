import dataclasses

import pytest
from pydantic import ValidationError

from oprag import ContextOptions
from oprag.adapters.fields import OPTIONS, ContextFields
from oprag.errors import OptionError
from tests.option_values import each_bad_value, each_good_value


def test_names_and_defaults_are_those_of_the_assembly():
    declared = {field.name: field.default for field in dataclasses.fields(ContextOptions)}
    restated = {name: field.default for name, field in ContextFields.model_fields.items()}
    assert list(declared) == list(OPTIONS)
    # The framework's own objects come back, so nothing is joined; `annotate` says whether copies with notes do.
    assert restated == {**declared, "stitch": False, "annotate": False}


@each_bad_value
def test_the_same_values_are_refused_in_the_same_words(name, value):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises((OptionError, ValidationError)) as caught:
        ContextFields(**{name: value})
    assert str(expected.value) in str(caught.value)


@each_good_value
def test_the_same_values_are_allowed_and_kept(name, value):
    assert getattr(ContextFields(**{name: value}), name) == value
    assert ContextFields(**{name: value})._context_options == dataclasses.replace(
        ContextOptions(stitch=False), **{name: value}
    )


def test_an_unknown_field_is_refused():
    with pytest.raises(ValidationError, match="token_budgets"):
        ContextFields(token_budgets=5)
