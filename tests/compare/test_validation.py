"""What pydantic finds wrong is told with its place, in our words, and without secrets."""

from typing import Any

import numpy as np
import pytest

from oprag.compare.spending import Limits, Price
from oprag.errors import ExperimentError
from tests.helpers import run_python


def test_what_is_shown_is_masked(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-0815-key")
    with pytest.raises(ExperimentError) as caught:
        Limits(calls="very-secret-0815-key")
    assert "0815" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_numbers_of_numpy_become_plain_and_whole_ones_stay_whole():
    given: Any = {"calls": np.int64(3), "money": np.float64(0.5)}
    limits = Limits(**given)
    assert (type(limits.calls), type(limits.money)) == (int, float)
    assert Price(input=2, output=0.5).model_dump() == {"input": 2, "output": 0.5, "cached": None}
    assert type(Price(input=2, output=0.5).input) is int


@pytest.mark.parametrize("use", ["oprag.compare.Price", f"oprag.compare.read_data({__file__!r})"])
def test_a_missing_pydantic_is_told_with_the_extra(use):
    code = f"import sys; sys.modules['pydantic'] = None; import oprag.compare; {use}"
    assert "pip install 'oprag[compare]'" in run_python(f"try:\n    {code}\nexcept ImportError as error: print(error)")
