from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from oprag._internal.tokens import approximate_tokens
from oprag.compare.data.data_set import DataSet, Question
from oprag.compare.experiment import Experiment
from oprag.compare.experiment_methods import CONTROLS
from oprag.compare.grid import axes, check_axis, has_effect
from oprag.errors import ExperimentError, OptionError
from oprag.methods.options import MethodOptions
from oprag.options import ContextOptions
from tests.compare.helpers import METHODS, Words, reply_to
from tests.option_values import BAD

DATA = DataSet(name="one", documents={"a": "Text."}, questions=[Question(id="1", text="What?", documents=("a",))])
COMMON = {
    "name": "grids",
    "data": {"one": DATA, "two": DATA},
    "embedders": {"local": "local", "other": Words()},
    "models": {"m": reply_to, "n": reply_to},
}
AXES = [field.name for field in fields(ContextOptions) if field.name in axes()]
# What makes a combination possible whose own value does not.
SENSIBLE: dict[str, Any] = dict(
    [
        *[("data", "two"), ("embedder", "other"), ("model", "n"), ("store", "chroma"), ("splitter", "words")],
        *[("search", "bm25"), ("chunk_size", 64), ("chunk_overlap", 7), ("repeat", 2), ("k", 9), ("seed", 3)],
        *[("max_candidates", 11), ("token_budget", 900), ("order", "edges"), ("source_ranking", "name")],
        *[("on_missing_position", "first"), ("source_key", "source"), ("position_key", "chunk_index")],
        *[("similarity_threshold", 0.5), ("redundancy_threshold", 0.9), ("min_chunks", 2), ("continuity", 0.3)],
        *[("neighbors", 1), ("stitch", False), ("separator", ""), ("gap", "[...]"), ("header", "{source}")],
        *[("method", "refine"), ("inner_method", "refine"), ("passage_tokens", 256), ("collapse_tokens", 512)],
        *[("rank_by", "cosine"), ("variants", 2), ("answer_threshold", 0.1), ("source_token_budget", 1_000)],
        *[("overflow", "truncate_end"), ("cite", True), ("empty_answer", "Nothing.")],
    ]
)

# What an axis needs to have an effect; a value without one is not checked.
RELATED: dict[str, dict[str, Any]] = {
    "max_candidates": {"k": 5},
    "seed": {"order": "random"},
    "min_chunks": {"similarity_threshold": 0.5},
    "inner_method": {"method": "step_down"},
    "passage_tokens": {"method": "map_reduce"},
    "collapse_tokens": {"method": "map_reduce"},
    "rank_by": {"method": "map_rerank"},
    "variants": {"method": "step_down"},
    "answer_threshold": {"method": "reciprocal"},
    "source_token_budget": {"method": "long_context"},
    "overflow": {"method": "long_context"},
}


def cells(grid, **changes):
    return Experiment(**{**COMMON, **changes}, grid=grid).grid_cells


def test_every_axis_is_tried():
    assert set(SENSIBLE) == set(axes())


def test_defaults_are_those_of_the_options():
    (cell, other) = cells({"k": 5}).cells
    assert (cell.data, other.data) == ("one", "two")
    assert cell.context_options == ContextOptions(k=5, count_tokens=approximate_tokens)
    assert cell.options == MethodOptions()
    assert (cell.embedder, cell.model, cell.store, cell.search, cell.repeat) == ("local", "m", "index", "dense", 1)
    assert cell.split == ("tokens", 128, 0)


@pytest.mark.parametrize("name", SENSIBLE)
def test_the_value_of_an_axis_comes_to_its_cells(name):
    grid = {"k": 5, "data": "one", **RELATED.get(name, {}), name: SENSIBLE[name]}
    (cell,) = cells(grid).cells
    assert cell.values[name] == SENSIBLE[name]
    (default,) = cells({key: value for key, value in grid.items() if key != name} | {"k": 5, "data": "one"}).cells
    assert (default.values != cell.values) == (default.values[name] != SENSIBLE[name])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *[("method", "staff"), ("inner_method", "staff"), ("inner_method", "closed_book"), ("passage_tokens", 0)],
        *[("collapse_tokens", 0), ("rank_by", "best"), ("variants", 0), ("answer_threshold", 2), ("overflow", "cut")],
        *[("source_token_budget", 0), ("cite", 1), ("empty_answer", 3), ("splitter", "lines"), ("chunk_size", 0)],
        *[("chunk_overlap", -1), ("search", "sparse"), ("repeat", 0), ("repeat", "none"), ("store", "redis")],
        *[("embedder", "third"), ("embedder", "none"), ("model", "o"), ("data", "three"), ("data", "none")],
    ],
)
def test_what_cannot_be_is_refused(name, wrong):
    with pytest.raises(ExperimentError, match=name):
        cells({"k": 5, **RELATED.get(name, {}), name: wrong})


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in AXES for value in BAD[name] if isinstance(value, str | int | float)]
)
def test_a_bad_value_of_the_assembly_is_refused_in_the_words_of_the_dataclass(name, value):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises(ExperimentError) as caught:
        cells({"k": 5, **RELATED.get(name, {}), name: value})
    if name != "continuity":  # alone it has nothing to choose from
        assert str(caught.value).removesuffix(".0") == str(expected.value).removesuffix(".0")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": [8, 4], "min_chunks": [0, 6]}, "min_chunks must be at most k, got min_chunks=6 and k=4"),
        ({"chunk_size": [64, 16], "chunk_overlap": 32}, "chunk_overlap=32 must be less than chunk_size=16"),
        (
            {"search": ["dense", "bm25"], "store": ["index", "chroma"]},
            "stores only support dense search, so search=bm25 requires store=index",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused(values, message):
    grid = {"data": "one", "k": 8, "similarity_threshold": 0.5, **values}
    with pytest.raises(ExperimentError, match=message):
        cells(grid)


def test_a_context_must_have_an_end():
    with pytest.raises(ExperimentError, match="neither k nor token_budget is set"):
        cells({"method": "stuff"})
    assert len(cells({"method": "closed_book"}).cells) == 2
    assert len(cells({"token_budget": 100}).cells) == 2


def test_cells_that_do_the_same_are_one():
    orders = {"order": ["source", "random", "rank"], "seed": [0, 1], "source_ranking": ["best_first", "name"]}
    found = cells({"data": "one", "k": 5, **orders, "min_chunks": [0, 2]})
    # source: two source_orders; random: two seeds; rank: one.
    assert len(found.cells) == 5
    assert found.combinations == 24


@pytest.mark.parametrize("method", [*METHODS, *CONTROLS])
def test_what_has_no_effect_on_a_method_makes_no_other_cell(method):
    options = {
        "inner_method": (["stuff", "refine"], {"step_down", "reciprocal"}),
        "collapse_tokens": ([100, 200], {"map_reduce"}),
        "rank_by": (["confidence", "cosine"], {"map_rerank"}),
        "variants": ([2, 3], {"step_down", "reciprocal"}),
        "answer_threshold": ([0.1, 0.2], {"reciprocal"}),
        "source_token_budget": ([100, 200], {"long_context", "self_route"}),
        "overflow": (["error", "truncate_end"], {"long_context", "self_route"}),
        "passage_tokens": ([100, 200], {"map_reduce", "refine", "map_rerank"}),
        "model": (["m", "n"], {*METHODS, *CONTROLS} - {"context_only"}),
        "repeat": ([1, 2], {*METHODS, *CONTROLS} - {"context_only"}),
        "order": (["source", "rank"], {*METHODS, *CONTROLS} - {"closed_book"}),
        "chunk_size": ([64, 128], {*METHODS, *CONTROLS} - {"closed_book"}),
        "embedder": (["local", "other"], {*METHODS, *CONTROLS} - {"closed_book"}),
    }
    for name, (values, methods) in options.items():
        found = cells({"data": "one", "k": 5, "method": method, "model": "m", name: values})
        assert len(found.cells) == (2 if method in methods else 1), name
    # What the inner method reads counts.
    given = {"data": "one", "k": 5, "method": method, "inner_method": "map_reduce", "model": "m"}
    inner = cells({**given, "collapse_tokens": [100, 200]})
    assert len(inner.cells) == (2 if method in {"map_reduce", "step_down", "reciprocal"} else 1)


def test_none_stands_for_no_value():
    found = cells({"data": "one", "k": [5, "none"], "token_budget": 100, "similarity_threshold": ["none", 0.5]})
    values = [(cell.context_options.k, cell.context_options.similarity_threshold) for cell in found.cells]
    assert sorted(values, key=str) == [(5, 0.5), (5, None), (None, 0.5), (None, None)]
    # Where it is a text it stays one.
    assert {cell.context_options.separator for cell in cells({"k": 5, "separator": ["none", ""]}).cells} == {"none", ""}


def test_numbers_of_numpy_are_those_of_python():
    found = cells({"data": "one", "k": [np.int64(5), 5], "similarity_threshold": [np.float32(0.5), 0.5]})
    assert [(cell.context_options.k, cell.context_options.similarity_threshold) for cell in found.cells] == [(5, 0.5)]
    assert type(found.cells[0].context_options.k) is int


def test_several_grids_are_one_experiment():
    found = cells([{"k": [4, 5], "data": "one"}, {"k": [5, 6], "data": "one"}, {"method": "closed_book"}])
    assert [cell.context_options.k for cell in found.cells] == [4, 5, 6, None, None]
    assert found.combinations == 6


def test_a_grid_of_millions_is_refused_at_once():
    values = {"data": "one", "method": "context_only", "order": "random", "k": range(1, 2_001), "seed": range(501)}
    with pytest.raises(ExperimentError, match=r"1,002,000 combinations, and the maximum is 100,000"):
        cells(values)


DEFAULTS = {name: axis.default for name, axis in axes().items()}
OPTIONS = {name for name, axis in axes().items() if axis.part == "method"}


def effective(**values):
    return {name for name in axes() if has_effect(name, {**DEFAULTS, **values})}


@pytest.mark.parametrize("option", sorted(OPTIONS - {"method"}))
def test_a_method_of_the_users_own_may_read_every_option(option):
    assert option in effective(method="mine")
    assert option in effective(method="step_down", inner_method="mine")


@pytest.mark.parametrize("axis", ["ordr", "seed", "repeat"])
def test_an_axis_that_cannot_be_compared_is_refused(axis):
    with pytest.raises(OptionError, match="axis"):
        check_axis(axis)
