"""Saving and loading a postprocessor: everything but functions comes back, and loading says what did not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from oprag import Chunk, Passage
from oprag.errors import SerializationWarning
from oprag.llama_index import OrderPreservingPostprocessor
from tests.adapters.llama_index.conftest import numbered, numbers
from tests.helpers import count_words

OPTIONS: dict[str, Any] = {
    "k": 7,
    "max_candidates": 9,
    "token_budget": 500,
    "order": "random",
    "seed": 3,
    "source_ranking": "name",
    "on_missing_position": "first",
    "on_uncertain": "ignore",
    "source_key": ("file_name", "title"),
    "position_key": ("page", "start"),
    "stitch": True,
    "separator": "\n--\n",
    "gap": "[...]",
    "header": "{source} {page}",
    "annotate": True,
}


def last_first(chunks: Sequence[Chunk]) -> str:
    return chunks[0].source or ""


def title(chunk: Chunk) -> Any:
    return chunk.metadata.get("title")


def above(passage: Passage) -> str:
    return passage.source or ""


FUNCTIONS: dict[str, Any] = {
    "count_tokens": count_words,
    "source_ranking": last_first,
    "source_key": title,
    "position_key": title,
    "header": above,
}


def _options(postprocessor: OrderPreservingPostprocessor) -> dict[str, Any]:
    return {name: getattr(postprocessor, name) for name in OPTIONS}


def test_dict_and_back():
    data = OrderPreservingPostprocessor(**OPTIONS).to_dict()
    assert data["class_name"] == "OrderPreservingPostprocessor"
    assert "callback_manager" not in data
    before = dict(data)
    assert _options(OrderPreservingPostprocessor.from_dict(data)) == OPTIONS
    assert data == before
    # JSON has no tuples.
    assert _options(OrderPreservingPostprocessor.from_json(json.dumps(data))) == OPTIONS


def test_defaults_and_back():
    saved = OrderPreservingPostprocessor().to_json()
    assert "left_out" not in json.loads(saved)
    loaded = OrderPreservingPostprocessor.from_json(saved)
    assert _options(loaded) == _options(OrderPreservingPostprocessor())
    assert numbers(loaded.postprocess_nodes(numbered([2, 0, 1]))) == [0, 1, 2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_left_out_and_loading_says_so(name: str):
    saved = OrderPreservingPostprocessor(k=4, **{name: FUNCTIONS[name]}).to_json()
    with pytest.warns(SerializationWarning, match=name):
        loaded = OrderPreservingPostprocessor.from_json(saved)
    assert loaded.k == 4
    assert getattr(loaded, name) == OrderPreservingPostprocessor.model_fields[name].default


def test_several_functions_are_named_in_one_warning():
    saved = OrderPreservingPostprocessor(**FUNCTIONS).to_dict()
    with pytest.warns(SerializationWarning) as caught:
        OrderPreservingPostprocessor.from_dict(saved, header=above)
    (warning,) = caught
    assert warning.filename == __file__
    assert all((name in str(warning.message)) == (name != "header") for name in FUNCTIONS)


def test_loading_refuses_what_construction_refuses():
    data = OrderPreservingPostprocessor().to_dict()
    with pytest.raises(ValidationError, match="kk"):
        OrderPreservingPostprocessor.from_dict(data | {"kk": 1})
    with pytest.raises(ValidationError, match="order must be one of"):
        OrderPreservingPostprocessor.from_dict(data | {"order": "sources"})
    with pytest.raises(ValidationError, match="k must be an integer"):
        OrderPreservingPostprocessor.from_dict(data, k=0)


def test_pickle_keeps_options_and_functions_of_modules():
    options = OPTIONS | FUNCTIONS
    loaded = pickle.loads(pickle.dumps(OrderPreservingPostprocessor(**options)))
    assert {name: getattr(loaded, name) for name in options} == options


def test_a_function_without_a_name_cannot_be_pickled():
    # LlamaIndex removes what pickle refuses; a budget would then be counted with another counter.
    postprocessor = OrderPreservingPostprocessor(token_budget=9, count_tokens=lambda text: len(text) * 2)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(postprocessor)
