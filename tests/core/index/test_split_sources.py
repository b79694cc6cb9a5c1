"""Splitting and stamping the sources of an index."""

from typing import Any

import pytest

from oprag import DocumentIndex, build_context, split_tokens
from oprag.errors import ChunkError, OptionError
from oprag.index.splitting import Split, pieces_of
from tests.helpers import WordEmbedder, prose, word_offsets

PAGES = [prose(40, seed=seed) for seed in range(4)]


def split_sources(sources: Any, tokenizer: Any, split: Split) -> tuple[list[str], list[dict[str, Any]]]:
    pieces = list(pieces_of(sources, tokenizer, split))
    return [window.text for window, _ in pieces], [place for _, place in pieces]


@pytest.mark.parametrize("splitter", ["sentences", None, 3])
def test_an_unknown_splitter_is_refused(splitter):
    with pytest.raises(OptionError, match="splitter must be one of tokens, words, recursive"):
        split_sources({}, word_offsets, Split(splitter))


def test_chunks_of_pages_stand_in_order_and_say_their_page():
    index = DocumentIndex.from_texts({"a.pdf": PAGES}, WordEmbedder(), word_offsets, chunk_size=7)
    context = build_context(index.search(PAGES[2].split()[5], k=len(index)), header="[p. {page}]", separator="")
    assert [chunk.text for chunk in context.kept] == [
        w.text for page in PAGES for w in split_tokens(page, word_offsets, 7)
    ]
    assert [span.page for passage in context.passages for span in passage.spans] == [1, 2, 3, 4]
    alone = build_context(context.kept, header="[p. {page}]", stitch=False)
    assert [alone.text.count(f"[p. {page}]") for page in (1, 2, 3, 4)] == [6, 6, 6, 6]


@pytest.mark.parametrize("pages", [[5], ["a", None], [b"bytes"], [["nested"]]])
def test_a_page_must_be_a_text(pages):
    with pytest.raises(ChunkError, match="the text to split must be a string"):
        split_sources({"a.pdf": pages}, word_offsets, Split())
