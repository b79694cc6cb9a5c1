from collections.abc import Iterable
from typing import Any

import pytest

from oprag import Chunk, build_context
from oprag._internal.masking import describe
from oprag.errors import OptionError
from tests.helpers import hit, prose

TEXT = prose(60)


def rendered(chunks: Iterable[Chunk], **options: Any) -> str:
    return build_context(chunks, **options).text


def test_a_gap_stands_between_passages_of_one_source_in_source_order():
    chunks = [
        hit("a0", 0, source="a", chunk_index=0),
        hit("b0", 1, source="b", chunk_index=0),
        hit("a9", 2, source="a", chunk_index=9),
        hit("b1", 3, source="b", chunk_index=1),
    ]
    assert rendered(chunks, gap="[...]") == "a0\n\n[...]\n\na9\n\nb0\n\nb1"
    assert rendered(chunks, gap="[...]", separator="") == "a0[...]a9b0b1"
    assert rendered(chunks, gap="") == "a0\n\na9\n\nb0\n\nb1"


def test_a_header_names_what_is_known_of_a_passage():
    chunks = [hit(TEXT[10:50], 3, page=2, start_index=10), hit(TEXT[40:80], 1, page=2, start_index=40)]
    header = "# {source} p. {page} [{start}, {end}) best {rank} {{}}"
    assert rendered(chunks, header=header) == f"# book p. 2 [10, 80) best 1 {{}}\n{TEXT[10:80]}"


def test_braces_in_a_source_are_text():
    assert rendered([hit("text", 0, source="{rank}")], header="{source}") == "{rank}\ntext"


@pytest.mark.parametrize("above", [None, 3, b"header", ["x"]])
def test_a_header_function_must_give_a_string(above):
    def header(passage):
        return above

    with pytest.raises(OptionError, match="a header function must return a string") as caught:
        rendered([hit("text", 0)], header=header)
    assert caught.value.value is header
    assert describe(above) in str(caught.value)


def test_an_empty_passage_leaves_no_separator_behind():
    chunks = [hit("one", 0, chunk_index=0), hit("", 1, chunk_index=4), hit("two", 2, chunk_index=8)]
    assert rendered(chunks) == "one\n\ntwo"
