"""Filters that restrict a search in the same way have equal keys; all others have different ones."""

from __future__ import annotations

import copy

import pytest
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from oprag._internal.filter_key import filter_key

DATA: list[object] = [
    None,
    "a",
    b"a",
    0,
    False,
    0.0,
    [],
    (),
    {},
    {"a": 1},
    {"a": True},
    {"a": 1.0},
    {"a": None},
    {"a": [1]},
    {"a": (1,)},
    {"a": {"$in": ["b", "c"]}},
    {"a": {"$in": ["c", "b"]}},
    MetadataFilters(filters=[MetadataFilter(key="a", value="b")]),
    MetadataFilters(filters=[MetadataFilter(key="a", value="c")]),
]


@pytest.mark.parametrize("value", DATA, ids=repr)
def test_plain_data_and_models_are_compared_by_value(value: object):
    assert filter_key(value) == filter_key(copy.deepcopy(value))
    assert hash(filter_key(value)) == hash(filter_key(copy.deepcopy(value)))
    assert sum(filter_key(value) == filter_key(other) for other in DATA) == 1


def test_a_model_that_was_changed_has_another_key():
    value = MetadataFilters(filters=[MetadataFilter(key="a", value="b")])
    before = filter_key({"filters": value})
    value.filters.append(MetadataFilter(key="c", value="d"))
    assert filter_key({"filters": value}) != before


class SameRepr:
    """As objects that show only their class."""

    def __repr__(self) -> str:
        return "Filter()"


def test_a_key_keeps_its_object_so_that_no_other_gets_its_address():
    # Without the keys, nearly all of these objects would have the same address.
    keys = {filter_key(SameRepr()) for _ in range(40)}
    assert len(keys) == 40
