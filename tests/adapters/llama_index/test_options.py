"""The options are those of `ContextOptions`: the same names, defaults and refusals, on both components."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from pydantic import BaseModel, ValidationError

from oprag import ContextOptions, OptionError
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever
from tests.adapters.llama_index.conftest import ListRetriever, numbered, numbers

Component = OrderPreservingPostprocessor | OrderPreservingRetriever
Make = Callable[..., Component]


def _retriever(**options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(retriever=ListRetriever(numbered([2, 0, 1])), **options)


def _use(component: Component) -> None:
    if isinstance(component, OrderPreservingRetriever):
        component.retrieve("question")
    else:
        component.postprocess_nodes(numbered([2, 0, 1]))


COMPONENTS: list[Make] = [OrderPreservingPostprocessor, _retriever]
OPTIONS = {field.name: field.default for field in dataclasses.fields(ContextOptions)}

REFUSED: list[tuple[str, Any]] = [
    *[(name, value) for name in ("k", "max_candidates", "token_budget") for value in (0, -1, True, 1.5, "3", [3])],
    ("count_tokens", None),
    ("count_tokens", "words"),
    ("order", "sources"),
    ("order", None),
    ("order", ["source"]),
    ("seed", "0"),
    ("seed", True),
    ("seed", None),
    ("source_ranking", "newest"),
    ("source_ranking", None),
    ("on_missing_position", "middle"),
    ("on_missing_position", None),
    *[(name, value) for name in ("source_key", "position_key") for value in (5, "", (), ["file_name"], ("a", 1))],
    *[(name, value) for name in ("similarity_threshold", "redundancy_threshold") for value in (1.5, -2, True, "0.5")],
    *[(name, value) for name in ("min_chunks", "neighbors") for value in (-1, None, True, 0.5, "1")],
    ("stitch", 1),
    ("stitch", "yes"),
    ("stitch", None),
    ("separator", None),
    ("separator", 5),
    ("gap", 5),
    ("header", 5),
    ("header", "{title}"),
    ("header", "{source!r}"),
    ("header", "{source.__class__}"),
    ("header", "{"),
]


def test_every_option_is_refused_somewhere():
    assert {name for name, _ in REFUSED} == set(OPTIONS)


@pytest.mark.parametrize("component", [OrderPreservingPostprocessor, OrderPreservingRetriever])
def test_same_names_and_defaults_as_assembly_but_for_stitch(component: type[BaseModel]):
    defaults = {name: field.default for name, field in component.model_fields.items() if name in OPTIONS}
    assert defaults == OPTIONS | {"stitch": False}
    own = {"annotate", "retriever", "callback_manager", "object_map"}
    for_vectors = {"embed_model", "vector_cache", "read_neighbors", "index"}
    assert set(component.model_fields) - set(OPTIONS) <= own | for_vectors


@pytest.mark.parametrize("make", COMPONENTS)
@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_refuses_at_construction_what_assembly_refuses_in_the_same_words(make: Make, name: str, value: Any):
    with pytest.raises(OptionError) as by_assembly:
        ContextOptions(**{name: value})
    with pytest.raises(ValidationError) as refusal:
        make(**{name: value})
    assert str(by_assembly.value) in str(refusal.value)


@pytest.mark.parametrize("make", COMPONENTS)
def test_fetch_k_below_k_is_refused(make: Make):
    with pytest.raises(ValidationError, match="max_candidates must be at least k, got max_candidates=3 and k=5"):
        make(k=5, max_candidates=3)


@pytest.mark.parametrize("make", COMPONENTS)
@pytest.mark.parametrize("name", ["kk", "tokenbudget", "top_n", "vectorstore"])
def test_unknown_options_are_refused(make: Make, name: str):
    with pytest.raises(ValidationError, match=name):
        make(**{name: 3})


@pytest.mark.parametrize("make", COMPONENTS)
@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_a_bad_value_set_later_is_refused_at_the_latest_on_use(make: Make, name: str, value: Any):
    component = make()

    def set_and_use() -> None:
        setattr(component, name, value)
        _use(component)

    with pytest.raises(ValueError, match=name):
        set_and_use()


@pytest.mark.parametrize("make", COMPONENTS)
def test_annotate_is_true_or_false(make: Make):
    component = make()

    def set_and_use() -> None:
        component.annotate = "no"  # type: ignore[assignment]
        _use(component)

    with pytest.raises(ValueError, match="annotate"):
        make(annotate=2)
    with pytest.raises(ValueError, match="annotate"):
        set_and_use()


@pytest.mark.parametrize("make", COMPONENTS)
def test_an_option_set_later_has_its_effect(make: Make):
    component = make()
    component.k = 2
    if isinstance(component, OrderPreservingRetriever):
        kept = component.retrieve("question")
    else:
        kept = component.postprocess_nodes(numbered([2, 0, 1]))
    assert numbers(kept) == [0, 2]


@pytest.mark.parametrize("make", COMPONENTS)
def test_an_unknown_attribute_cannot_be_set(make: Make):
    with pytest.raises(ValueError, match="token_buget"):
        make().token_buget = 5  # type: ignore[union-attr]


@pytest.mark.parametrize("make", COMPONENTS)
def test_refusals_do_not_show_whole_inputs(make: Make):
    with pytest.raises(ValidationError) as refusal:
        make(header="{secret}", source_key="api-key-of-somebody")
    assert "api-key-of-somebody" not in str(refusal.value)


def test_postprocessor_is_one_and_has_its_own_class_name():
    assert issubclass(OrderPreservingPostprocessor, BaseNodePostprocessor)
    assert OrderPreservingPostprocessor.class_name() == "OrderPreservingPostprocessor"
