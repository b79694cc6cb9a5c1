"""Values that each option of `ContextOptions` and `MethodOptions` refuses and takes, for every surface that has them.

The dataclasses themselves, and the fields that all adapters inherit, are tried with all of them. The other surfaces are
tried with one of each, which shows that they ask the dataclasses.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from oprag import approximate_tokens
from oprag.options import HEADER_FIELDS

OBJECT = object()

# The first of each is one that a careless surface would convert or take: a digit for a number, a number for a text.
BAD: dict[str, list[Any]] = {
    "k": ["3", 0, -1, 1.0, True, (1,), [3], float("nan")],
    "max_candidates": [True, 0, -1, 2.5, False, "3"],
    "continuity": ["0.3", None, True, -0.1, 1.01, 10**400, float("nan"), float("inf"), [0.3], OBJECT],
    "token_budget": [100.0, 0, -1, True, "100", float("inf")],
    "count_tokens": ["len", None, 5],
    "order": ["Source", None, "", "sorted", 1, ["source"], OBJECT],
    "seed": ["1", None, 1.0, True],
    "source_ranking": ["first", None, "", 1, ("best_first",)],
    "on_missing_position": ["raise", None, "", 1, True],
    "on_uncertain": ["raise", None, "", 1, True],
    "source_key": [["source"], "", (), ("source", ""), 1, ("source", 1), True],
    "position_key": [b"page", "", (), ("page", ""), ["page"], 1, ("page", 1), ("page", None)],
    "similarity_threshold": ["0.5", 1.01, 10**400, -1.5, float("nan"), float("inf"), True, [0.5], OBJECT],
    "redundancy_threshold": [True, 2, -1.01, float("nan"), float("-inf"), False, "0.9", (0.9,), OBJECT],
    "min_chunks": ["2", None, -1, 1.0, True],
    "neighbors": [True, None, -1, 0.5, False, "1", (1, 1)],
    "whole_source_tokens": ["100", 0, -1, 1.0, True, float("inf")],
    "stitch": ["yes", None, 1, 0],
    "separator": [b"\n", None, 1, ["\n"]],
    "gap": [b"...", 1, ["..."], False],
    "header": ["{title}", 1, b"x", ["{source}"], False],
}

GOOD: dict[str, list[Any]] = {
    "k": [None, 1, 10**9, np.int64(5), np.uint8(5)],
    "max_candidates": [None, 1, np.int64(5)],
    "continuity": [0, 0.0, np.float32(0)],  # others require k or token_budget
    "token_budget": [None, 1, np.int32(5)],
    "count_tokens": [len, approximate_tokens],
    "order": ["source", "rank", "reverse_rank", "edges", "random"],
    "seed": [0, -5, 2**80, np.int64(-5)],
    "source_ranking": ["best_first", "best_last", "score_sum", "name", len],
    "on_missing_position": ["last", "first", "drop", "error"],
    "on_uncertain": ["warn", "ignore", "error"],
    "source_key": [None, "book", ("book", "shelf"), len],
    "position_key": [None, "verse", ("book", "verse"), len],
    "similarity_threshold": [None, -1, 0, 1, 0.35, np.float32(0.5)],
    "redundancy_threshold": [None, -1.0, 1.0, 0.95, np.float64(0.5)],
    "min_chunks": [0, 1, 500, np.int64(5)],
    "neighbors": [0, 1, 500, np.int64(5)],
    "whole_source_tokens": [None, 1, 10**6, np.int64(5)],
    "stitch": [True, False],
    "separator": ["", "\n", "---"],
    "gap": [None, "", "[...]"],
    "header": [None, "", "# {source}", "{{literal}} {rank}", *(f"{{{field}}}" for field in HEADER_FIELDS), repr],
}

BAD_FOR_METHODS: dict[str, list[Any]] = {
    "method": [None, "", 5, ("stuff",)],
    "inner_method": ["", None, 5],
    "passage_tokens": ["5", 0, -1, 1.5, None, True],
    "collapse_tokens": [0, -1, 1.5, "5", False],
    "rank_by": ["cosinus", "", None, 5, ["cosine"]],
    "variants": [0, -1, 2.0, "4", None, True],
    "answer_threshold": [1.1, -1.1, "0.5", None, True, float("nan"), float("inf")],
    "source_token_budget": [0, -1, 1.5, "5", True],
    "overflow": ["truncate", "", None, 5],
    "cite": [None, 1, "yes"],
    "condense": [None, 0, "no"],
    "empty_answer": [None, 5, b"x"],
    "on_error": ["ignore", "", None, 5],
    "max_concurrency": [0, -1, 1.5, "8", None, True],
}

GOOD_FOR_METHODS: dict[str, list[Any]] = {
    "method": ["stuff", "my_own"],
    "inner_method": ["refine"],
    "passage_tokens": [1, 4_096, np.int64(5)],
    "collapse_tokens": [None, 1, np.int64(5)],
    "rank_by": ["confidence", "cosine"],
    "variants": [1, 9, np.int32(5)],
    "answer_threshold": [-1, 0, 1, 0.25, np.float32(0.5), np.float64(0.5), Fraction(1, 2)],
    "source_token_budget": [None, 1, np.int64(5)],
    "overflow": ["error", "truncate_middle", "truncate_end"],
    "cite": [True, False],
    "condense": [True, False],
    "empty_answer": ["", "Nothing."],
    "on_error": ["raise", "skip"],
    "max_concurrency": [1, 128, np.int64(5)],
}


def cases(table: dict[str, list[Any]]) -> list[ParameterSet]:
    """Each value of a table, with its option."""
    return [
        pytest.param(name, value, id=f"{name}-{index}") for name in table for index, value in enumerate(table[name])
    ]


each_bad_value = pytest.mark.parametrize(("name", "value"), cases(BAD))
each_good_value = pytest.mark.parametrize(("name", "value"), cases(GOOD))


def of_its_type(name: str) -> list[Any]:
    """The bad values of an option that are of a type that it takes, as files and command lines give them."""
    types = {type(value) for value in GOOD[name] if isinstance(value, str | int | float)}
    return [value for value in BAD[name] if type(value) in types and value == value]


a_bad_value_of_each = pytest.mark.parametrize(("name", "value"), [(name, values[0]) for name, values in BAD.items()])
a_bad_value_of_each_type = pytest.mark.parametrize(
    ("name", "value"), [(name, values[0]) for name in BAD if (values := of_its_type(name))]
)
a_bad_value_of_each_for_methods = pytest.mark.parametrize(
    ("name", "value"), [(name, values[0]) for name, values in BAD_FOR_METHODS.items()]
)
