"""What pydantic finds wrong is told with its place, in our words, and without secrets."""

from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import AfterValidator, Field

from oprag.compare.spending import Price
from oprag.compare.validation import Amount, Count, Name, Natural, StrictModel, Text, validated
from oprag.errors import ExperimentError, OptionError, PromptError
from tests.helpers import run_python


def refuse(value):
    if value == "option":
        raise OptionError("there is no such option", value)
    if value == "prompt":
        raise PromptError("there is no such prompt", value)
    return value


class Model(StrictModel):
    use: Text
    retries: Natural | None = None
    kind: Annotated[str, AfterValidator(refuse)] = "a"


class Whole(StrictModel):
    name: Name = "x"
    models: dict[str, Model] = Field(default_factory=dict)
    metrics: list[str] = Field(default_factory=list)
    most: Count = 8
    price: Amount = 0.0
    some: list[str] = Field(default=["a"], min_length=1)
    fast: bool = False
    size: Literal["small", "big"] = "big"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nme": "x"}, "unknown key 'nme'; did you mean 'name'?"),
        ({"zzz": "x"}, "unknown key 'zzz'; expected one of name, models, metrics, most, price, some, fast, size"),
        ({"name": 2.5}, "name must be a string, got 2.5"),
        ({"name": " "}, "name must not be empty, got ' '"),
        ({"name": "a\ud83d"}, "name must be valid Unicode, got "),
        ({"models": 3}, "models must be a mapping, got 3"),
        ({"models": {"m": {}}}, "models.m.use is missing; the fields are "),
        ({"models": {"m": {"use": {"a": 1}}}}, "models.m.use must be a string, got a mapping"),
        ({"models": {"m": {"use": "x", "retries": -1}}}, "models.m.retries must be an integer >= 0, got -1"),
        ({"models": {"m": {"use": "x", "retrys": 1}}}, "models.m: unknown key 'retrys'; did you mean 'retries'?"),
        ({"models": {"m": {"use": "x", "kind": "option"}}}, "models.m.kind: there is no such option"),
        ({"metrics": ["f1", 3]}, "metrics[1] must be a string, got 3"),
        ({"most": 0}, "most must be an integer >= 1, got 0"),
        ({"price": -0.5}, "price must be a number >= 0, got -0.5"),
        ({"price": float("nan")}, "price must be a number >= 0, got nan"),
        ({"some": []}, "some must contain at least 1, got []"),
        ({"size": "bg"}, "size must be 'small' or 'big', got 'bg'"),
        ({"models": {3: {"use": "x"}}}, "models[3] must be a string, got 3"),
        ({"fast": {}}, "fast must be true or false, got a mapping"),
    ],
)
def test_wrong_values(wrong, message):
    with pytest.raises(ExperimentError) as caught:
        Whole(**wrong)
    assert str(caught.value).startswith(message)
    with pytest.raises(ExperimentError) as caught:
        validated(Whole, wrong, place="file.part")
    assert str(caught.value).startswith("file.part")


def test_what_is_shown_is_masked(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "very-secret-0815-key")
    with pytest.raises(ExperimentError) as caught:
        Whole(most="very-secret-0815-key")
    assert "0815" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_numbers_of_numpy_become_plain_and_whole_ones_stay_whole():
    given: Any = {"most": np.int64(3), "price": np.float64(0.5)}
    whole = Whole(**given)
    assert (type(whole.most), type(whole.price)) == (int, float)
    assert Price(input=2, output=0.5).model_dump() == {"input": 2, "output": 0.5, "cached": None}
    assert type(Price(input=2, output=0.5).input) is int


@pytest.mark.parametrize("use", ["oprag.compare.Price", f"oprag.compare.read_data({__file__!r})"])
def test_a_missing_pydantic_is_told_with_the_extra(use):
    code = f"import sys; sys.modules['pydantic'] = None; import oprag.compare; {use}"
    assert "pip install 'oprag[compare]'" in run_python(f"try:\n    {code}\nexcept ImportError as error: print(error)")
