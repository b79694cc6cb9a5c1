from collections.abc import Iterable
from typing import Any

import pytest

from oprag import Chunk, ContextOptions, build_context
from oprag._internal.masking import describe
from oprag.chunk import Passage
from oprag.errors import OptionError
from oprag.pipeline.render import header_of, render
from tests.helpers import cut, hit, prose

TEXT = prose(60)


def rendered(chunks: Iterable[Chunk], **options: Any) -> str:
    return build_context(chunks, **options).text


def test_nothing_renders_as_nothing():
    assert render([], ContextOptions(header="# {source}", gap="...")) == ""


def test_passages_are_separated():
    chunks = [hit("one", 0, chunk_index=0), hit("two", 1, chunk_index=4)]
    assert rendered(chunks) == "one\n\ntwo"
    assert rendered(chunks, separator="") == "onetwo"
    assert rendered(chunks, separator=" * ") == "one * two"


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


@pytest.mark.parametrize("order", ["rank", "reverse_rank", "edges", "random"])
def test_other_orders_have_no_gap(order):
    chunks = [hit("a0", 0, chunk_index=0), hit("a9", 1, chunk_index=9)]
    assert "[...]" not in rendered(chunks, gap="[...]", order=order)


@pytest.mark.filterwarnings("ignore::oprag.errors.SourceWarning")
def test_two_chunks_without_a_source_have_no_gap():
    assert rendered([Chunk("a", 0), Chunk("b", 1)], gap="[...]") == "a\n\nb"


def test_a_header_names_what_is_known_of_a_passage():
    chunks = [hit(TEXT[10:50], 3, page=2, start_index=10), hit(TEXT[40:80], 1, page=2, start_index=40)]
    header = "# {source} p. {page} [{start}, {end}) best {rank} {{}}"
    assert rendered(chunks, header=header) == f"# book p. 2 [10, 80) best 1 {{}}\n{TEXT[10:80]}"


@pytest.mark.filterwarnings("ignore::oprag.errors.SourceWarning")
def test_a_header_leaves_out_what_is_not_known():
    assert rendered([Chunk("text", 0)], header="[{source}|{page}|{start}|{end}|{rank}]") == "[||||0]\ntext"


def test_every_passage_has_its_header():
    chunks = cut(TEXT, [(0, 20), (100, 120), (20, 40)])
    assert rendered(chunks, header="@{start}", gap="~") == f"@0\n{TEXT[:40]}\n\n~\n\n@100\n{TEXT[100:120]}"


def test_a_passage_of_several_spans_starts_with_the_first_and_ends_with_the_last():
    chunks = cut("One paragraph.\n\nAnother.", [(0, 14), (16, 24)])
    assert rendered(chunks, header="{start}-{end}").startswith("0-24\n")


def test_braces_in_a_source_are_text():
    assert rendered([hit("text", 0, source="{rank}")], header="{source}") == "{rank}\ntext"


def test_a_header_may_be_a_function_of_the_passage():
    chunks = [hit("one", 0, chunk_index=0, author="Ada"), hit("two", 1, chunk_index=5, author="")]
    assert rendered(chunks, header=lambda passage: passage.chunks[0].metadata["author"]) == "Ada\none\n\ntwo"


@pytest.mark.parametrize("above", [None, 3, b"header", ["x"]])
def test_a_header_function_must_give_a_string(above):
    def header(passage):
        return above

    with pytest.raises(OptionError, match="a header function must return a string") as caught:
        rendered([hit("text", 0)], header=header)
    assert caught.value.value is header
    assert describe(above) in str(caught.value)


def test_no_header_is_no_line():
    passage = Passage("text", (hit("text", 0),), ())
    assert header_of(passage, None) == header_of(passage, "") == ""


def test_an_empty_passage_leaves_no_separator_behind():
    chunks = [hit("one", 0, chunk_index=0), hit("", 1, chunk_index=4), hit("two", 2, chunk_index=8)]
    assert rendered(chunks) == "one\n\ntwo"
