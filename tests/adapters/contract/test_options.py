"""`ContextOptions` declares the options; every component has the same names, defaults and refusals."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from pydantic import ValidationError

from oprag import ContextOptions
from oprag.errors import OptionError
from oprag.methods import MethodOptions
from tests.adapters.contract.frameworks import Framework, each_framework
from tests.adapters.contract.surfaces import (
    SURFACES,
    Surface,
    each_assignable_surface,
    each_surface,
    each_that_answers,
)
from tests.option_values import a_bad_value_of_each, a_bad_value_of_each_for_methods

DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ContextOptions)}


def parts(text: str) -> int:
    return text.count("Part ")


def number(chunk: Any) -> Any:
    return chunk.metadata["chunk_index"]


def titled(passage: Any) -> str:
    return f"# {passage.source}"


TAKEN: list[tuple[str, Any]] = [
    ("k", 3),
    ("max_candidates", 130),
    ("token_budget", 1_000),
    ("count_tokens", parts),
    *[("order", order) for order in ("rank", "reverse_rank", "edges", "random")],
    ("seed", 7),
    *[("source_ranking", ranking) for ranking in ("best_last", "score_sum", "name", len)],
    *[("on_missing_position", place) for place in ("first", "drop", "error")],
    *[("on_uncertain", what) for what in ("ignore", "error")],
    *[("source_key", key) for key in ("chunk_index", ("chunk_index",), number)],
    *[("position_key", key) for key in ("chunk_index", ("chunk_index",), number)],
    ("similarity_threshold", -1),
    ("redundancy_threshold", 1),
    ("min_chunks", 3),
    ("neighbors", 2),
    ("continuity", 0),  # more than that requires k or token_budget
    ("whole_source_tokens", 9),
    ("stitch", True),
    ("separator", "\n---\n"),
    ("gap", "[...]"),
    *[("header", header) for header in ("{source} {page} {start} {end} {rank} {{}}", titled)],
]


def test_these_values_are_those_of_every_option():
    assert {name for name, _ in TAKEN} == set(DEFAULTS)


@each_surface
def test_every_option_is_there_with_its_default(surface: Surface):
    made = surface.make()
    options = {name: getattr(made, name) for name in DEFAULTS}
    assert options == DEFAULTS | surface.defaults
    assert list(map(type, options.values())) == list(map(type, (DEFAULTS | surface.defaults).values()))


@each_surface
@a_bad_value_of_each
def test_a_value_is_refused_in_the_words_of_the_dataclass(surface: Surface, name: str, value: Any):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises(ValidationError) as caught:
        surface.make(**{name: value})
    assert str(expected.value) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@each_that_answers
def test_every_option_of_methods_is_there_with_its_default(surface: Surface):
    made = surface.make()
    assert (
        MethodOptions(**{field.name: getattr(made, field.name) for field in fields(MethodOptions)}) == MethodOptions()
    )


@each_that_answers
@a_bad_value_of_each_for_methods
def test_a_value_for_methods_is_refused_in_the_words_of_the_dataclass(surface: Surface, name: str, value: Any):
    with pytest.raises(OptionError) as expected:
        MethodOptions(**{name: value})
    with pytest.raises(ValidationError) as caught:
        surface.make(**{name: value})
    assert str(expected.value) in str(caught.value)


@each_framework
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "stuf"}, "unknown method 'stuf'"),
        ({"method": "reciprocal"}, "requires embed"),
        ({"method": "map_rerank", "rank_by": "cosine"}, "requires embed"),
        ({"method": "long_context"}, "read_source"),
        ({"method": "step_down", "inner_method": "step_down"}, "recurse endlessly"),
        ({"method": "step_down", "inner_method": "self_route"}, "read_source"),
        ({"read_source": "/no/such/folder"}, "read_source must be an existing folder"),
        ({"read_source": 3}, "read_source must be"),
        ({"prompts": {"anwser": "x"}}, "unknown prompt 'anwser'"),
        ({"prompts": "x"}, "prompts must be a mapping"),
        ({"cite": True, "header": str}, "header cannot be a function"),
    ],
    ids=str,
)
def test_what_a_method_lacks_is_said_when_its_object_is_made(
    framework: Framework, options: dict[str, Any], message: str
):
    given: dict[str, Any] = {"retriever": framework.retriever([]), framework.embedder_option: None}
    with pytest.raises(ValidationError, match=message):
        framework.answerer(framework.model(), **given | options)


@each_assignable_surface
@a_bad_value_of_each
def test_a_value_that_is_assigned_is_refused_and_not_kept(surface: Surface, name: str, value: Any):
    made = surface.make()
    before, used = getattr(made, name), surface.numbers(surface.use(made))
    with pytest.raises(ValidationError, match=name):
        setattr(made, name, value)
    assert getattr(made, name) is before
    assert surface.numbers(surface.use(made)) == used


@each_surface
@pytest.mark.parametrize(("name", "value"), TAKEN)
def test_every_option_is_taken_as_it_is_and_followed(surface: Surface, name: str, value: Any):
    made = surface.make(**{name: value})
    assert getattr(made, name) is value
    assert surface.use(made)
    if surface.options_of is not None:
        options = surface.options_of(made)
        # A k from the user replaces both limits over a store.
        limits = {"token_budget": None} if name == "k" else {}
        expected = DEFAULTS | surface.defaults | limits | {"stitch": True, name: value}
        assert {option: getattr(options, option) for option in DEFAULTS} == expected


@each_assignable_surface
def test_an_option_that_is_assigned_is_followed(surface: Surface):
    made = surface.make()
    made.k = 2
    assert len(surface.numbers(surface.use(made))) == 2
    copied = made.model_copy(update={"k": 1})
    assert [len(surface.numbers(surface.use(one))) for one in (copied, made)] == [1, 2]
    with pytest.raises(ValidationError, match="k must be an integer"):
        made.model_copy(update={"k": 0})


@each_assignable_surface
@pytest.mark.parametrize("value", [2, "no"])
def test_annotate_is_true_or_false(surface: Surface, value: Any):
    with pytest.raises(ValueError, match="annotate"):
        surface.make(annotate=value)
    made = surface.make()
    with pytest.raises(ValueError, match="annotate"):
        made.annotate = value


UNKNOWN = {
    "token_budgets": "did you mean 'token_budget'",
    "oder": "did you mean 'order'",
    "similarity_treshold": "did you mean 'similarity_threshold'",
    "top_n": "",
    "similarity_cutoff": "",
    "zzz": r"expected one of .*k, ",
}


@each_surface
@pytest.mark.parametrize(("name", "advice"), UNKNOWN.items())
def test_unknown_names_are_refused_with_a_guess(surface: Surface, name: str, advice: str):
    with pytest.raises(ValidationError, match=f"unknown option '{name}'; .*{advice}"):
        surface.make(**{name: 5})
    if "llama" in surface.name:
        with pytest.raises(ValueError, match=name):
            setattr(surface.make(), name, 5)


@each_surface
def test_refusals_do_not_show_whole_inputs(surface: Surface):
    with pytest.raises(ValidationError) as refusal:
        surface.make(header="{secret}", source_key="api-key-of-somebody")
    assert "api-key-of-somebody" not in str(refusal.value)


def test_all_components_are_here():
    import oprag.langchain
    import oprag.llama_index

    with_options = [
        getattr(package, name)
        for package in (oprag.langchain, oprag.llama_index)
        for name in package.__all__
        if set(DEFAULTS) <= set(getattr(getattr(package, name), "model_fields", ()))
    ]
    assert {surface.cls for surface in SURFACES} == set(with_options)
