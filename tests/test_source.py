from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from oprag import Chunk
from oprag.source import source_of


def named(source_key: Any = None, *, given: Any = None, owner: str | None = None, **metadata: Any) -> str | None:
    return source_of(Chunk("text", 0, source=given, metadata=metadata, document_id=owner), source_key)


def test_names_come_before_ids_and_the_metadata_keys_in_a_fixed_sequence():
    metadata = {
        "source": "a",
        "file_path": "b",
        "url": "c",
        "file_name": "d",
        "ref_doc_id": "e",
        "document_id": "f",
    }
    found = []
    while metadata:
        found.append(named(owner="g", **metadata))
        del metadata[next(iter(metadata))]
    assert [*found, named(owner="g"), named()] == ["a", "b", "c", "d", "e", "f", "g", None]


def test_the_chunk_itself_goes_before_its_metadata():
    assert named(given="given", url="seen") == "given"


def test_pages_with_random_ids_are_one_source():
    # A PDF reader makes one document a page, each with a random id.
    pages = [Chunk("text", rank, metadata={"file_name": "a.pdf", "document_id": f"id-{rank}"}) for rank in range(3)]
    assert {source_of(page) for page in pages} == {"a.pdf"}


@pytest.mark.parametrize(
    ("source_key", "expected"),
    [("book", "b"), (("missing", "book"), "b"), (("shelf", "book"), "s"), (lambda chunk: chunk.metadata["shelf"], "s")],
)
def test_a_source_key_is_a_name_several_or_a_function(source_key, expected):
    assert named(source_key, given="given", book="b", shelf="s") == expected


@pytest.mark.parametrize(
    "value", ["", " \n", None, True, False, [], ["a"], {}, {"a": 1}, float("nan"), float("inf"), Decimal("sNaN"), b"a"]
)
@pytest.mark.parametrize("source_key", ["book", ("book",), lambda chunk: chunk.metadata["book"]])
def test_a_value_that_cannot_name_falls_to_the_next_key(source_key, value):
    assert named(source_key, given=value, book=value, source=value, url="next") == "next"


@pytest.mark.parametrize("value", [5, 5.0, "5", np.float64(5), np.int64(5), Decimal(5)])
def test_a_number_names_a_source_whatever_type_a_store_made_of_it(value):
    assert named(url=value) == "5"


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "0"), (-3, "-3"), (2.5, "2.5"), (-2.5, "-2.5"), (np.int8(-128), "-128")]
)
def test_any_finite_number_is_a_name(value, expected):
    assert named(url=value) == expected


def test_the_error_of_a_source_function_is_the_callers():
    with pytest.raises(KeyError):
        named(lambda chunk: chunk.metadata["missing"])
