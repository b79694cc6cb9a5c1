import dataclasses
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from oprag import PAPER, Assembly, OptionError, approximate_tokens, build_context
from oprag.assembly import HEADER_FIELDS, as_assembly
from oprag.masking import describe
from tests.helpers import hit

OBJECT = object()

REFUSED: dict[str, list[Any]] = {
    "k": [0, -1, 1.0, True, "3", (1,)],
    "fetch_k": [0, -1, 2.5, False, "3"],
    "token_budget": [0, -1, 100.0, True, "100"],
    "count_tokens": [None, 5, "len"],
    "order": [None, "", "Source", "sorted", 1, ["source"], OBJECT],
    "seed": [None, 1.0, True, "1"],
    "source_order": [None, "", "first", 1, ("best",)],
    "missing_position": [None, "", "raise", 1],
    "source_key": ["", (), ("source", ""), ["source"], 1, ("source", 1), True],
    "position_key": ["", (), ("page", ""), ["page"], 1, ("page", 1), b"page"],
    "similarity_threshold": [1.01, -1.5, float("nan"), float("inf"), True, "0.5", [0.5], OBJECT],
    "redundancy_threshold": [2, -1.01, float("nan"), float("-inf"), False, "0.9", (0.9,), OBJECT],
    "min_keep": [None, -1, 1.0, True, "2"],
    "neighbors": [None, -1, 0.5, False, "1", (1, 1)],
    "stitch": [None, 1, 0, "yes"],
    "separator": [None, 1, b"\n", ["\n"]],
    "gap": [1, b"...", ["..."], False],
    "header": [1, b"x", ["{source}"], False],
}

ALLOWED: dict[str, list[Any]] = {
    "k": [None, 1, 10**9, np.int64(5), np.uint8(5)],
    "fetch_k": [None, 1, np.int64(5)],
    "token_budget": [None, 1, np.int32(5)],
    "count_tokens": [len, approximate_tokens],
    "order": ["source", "rank", "reverse", "edges", "random"],
    "seed": [0, -5, 2**80, np.int64(-5)],
    "source_order": ["best", "best_last", "total", "natural", len],
    "missing_position": ["last", "first", "drop", "error"],
    "source_key": [None, "book", ("book", "shelf"), len],
    "position_key": [None, "verse", ("book", "verse"), len],
    "similarity_threshold": [None, -1, 0, 1, 0.35, np.float32(0.5)],
    "redundancy_threshold": [None, -1.0, 1.0, 0.95, np.float64(0.5)],
    "min_keep": [0, 1, 500, np.int64(5)],
    "neighbors": [0, 1, 500, np.int64(5)],
    "stitch": [True, False],
    "separator": ["", "\n", "---"],
    "gap": [None, "", "[...]"],
    "header": [None, "", "# {source}", "{{literal}} {rank}", *(f"{{{field}}}" for field in HEADER_FIELDS), repr],
}


def cases(table: dict[str, list[Any]]) -> list[ParameterSet]:
    return [
        pytest.param(name, value, id=f"{name}-{index}") for name in table for index, value in enumerate(table[name])
    ]


@pytest.mark.parametrize(("name", "value"), cases(REFUSED))
def test_a_value_that_an_option_cannot_have_is_refused_and_carried(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be ") as caught:
        Assembly(**{name: value})
    assert caught.value.value is value
    assert isinstance(caught.value, ValueError)
    assert describe(value) in str(caught.value)


@pytest.mark.parametrize("value", [np.float64(5), np.int64(-5), np.bool_(True), np.array([5])], ids=repr)
@pytest.mark.parametrize("name", ["k", "fetch_k", "token_budget", "min_keep", "neighbors"])
def test_a_number_of_numpy_that_is_no_count_is_refused(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be a whole number"):
        Assembly(**{name: value})


@pytest.mark.parametrize("value", [np.float32("nan"), np.float32(1.5), np.int64(2), np.bool_(True)], ids=repr)
@pytest.mark.parametrize("name", ["similarity_threshold", "redundancy_threshold"])
def test_a_number_of_numpy_that_is_no_cosine_is_refused(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be a cosine"):
        Assembly(**{name: value})


@pytest.mark.parametrize(("name", "value"), cases(ALLOWED))
def test_a_value_that_an_option_can_have_is_kept(name, value):
    kept = getattr(Assembly(**{name: value}), name)
    assert kept == value
    assert not isinstance(kept, np.generic)


def test_every_option_is_tested():
    names = {field.name for field in dataclasses.fields(Assembly)}
    assert names == set(REFUSED) == set(ALLOWED)


@pytest.mark.parametrize(
    "header",
    [
        "{}",
        "{0}",
        "{title}",
        "{source.__class__}",
        "{source[0]}",
        "{source!r}",
        "{rank:>10}",
        "{start:{end}}",
        "{",
        "}",
        "{source",
    ],
)
def test_a_header_template_holds_plain_fields_alone(header):
    with pytest.raises(OptionError, match=r"header may hold \{number\}, \{source\}, \{page\}, \{start\}, ") as caught:
        Assembly(header=header)
    assert caught.value.value == header


def test_fewer_candidates_than_are_kept_are_refused():
    with pytest.raises(OptionError, match="fetch_k=5 and k=6") as caught:
        Assembly(k=6, fetch_k=5)
    assert caught.value.value == 5
    assert Assembly(k=6, fetch_k=6).fetch_k == 6


def test_more_chunks_to_keep_than_are_allowed_are_refused():
    with pytest.raises(OptionError, match="min_keep=7 and k=6") as caught:
        Assembly(k=6, min_keep=7)
    assert caught.value.value == 7
    assert Assembly(k=6, min_keep=6).min_keep == 6


def test_options_are_named_and_fixed():
    with pytest.raises(TypeError):
        Assembly(3)  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Assembly().k = 3  # type: ignore[misc]


def test_the_setting_of_the_paper():
    assert Assembly(k=128, separator="") == PAPER
    assert hash(PAPER) == hash(Assembly(k=128, separator=""))
    assert pickle.loads(pickle.dumps(PAPER)) == PAPER


def test_every_option_says_what_it_does():
    descriptions = {field.name: field.metadata["help"] for field in dataclasses.fields(Assembly)}
    assert all(len(text) > 20 and text.endswith(".") for text in descriptions.values()), descriptions


def test_options_change_an_assembly():
    base = Assembly(k=5, gap="...")
    assert as_assembly(base, {"k": 7}) == Assembly(k=7, gap="...")
    assert base.k == 5
    assert as_assembly(base, {}) is base
    assert as_assembly(None, {}) == Assembly()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("token_budgets", "did you mean 'token_budget'"),
        ("zzz", "expected one of k, "),
        ("top_k", "unknown option 'top_k'; use k="),
        ("similarity_cutoff", "use similarity_threshold=, a cosine similarity"),
    ],
)
def test_an_unknown_option_is_refused_with_a_hint(name, hint):
    with pytest.raises(OptionError, match=hint) as caught:
        build_context([hit("text", 0)], None, **{name: 5})  # type: ignore[arg-type]
    assert caught.value.value == name


def test_an_unknown_option_of_the_constructor_is_refused_with_the_same_hint():
    makers: list[Callable[..., Assembly]] = [Assembly, functools.partial(dataclasses.replace, Assembly())]
    for make in makers:
        with pytest.raises(OptionError, match="unknown option 'top_k'; use k=") as caught:
            make(top_k=5)
        assert caught.value.value == "top_k"
        with pytest.raises(OptionError, match="did you mean 'token_budget'"):
            make(token_budgets=5)
    assert list(inspect.signature(Assembly).parameters) == [field.name for field in dataclasses.fields(Assembly)]


@pytest.mark.parametrize("assembly", [{"k": 3}, 3, "source", Assembly])
def test_something_else_than_an_assembly_is_refused(assembly):
    with pytest.raises(OptionError, match=r"expected an oprag\.Assembly") as caught:
        build_context([hit("text", 0)], assembly)
    assert caught.value.value is assembly


def test_a_changed_option_is_checked_beside_the_others():
    with pytest.raises(OptionError, match="fetch_k must be at least k"):
        build_context([hit("text", 0)], Assembly(k=8, fetch_k=10), fetch_k=4)
