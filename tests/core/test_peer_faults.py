"""Faults that other packages have at this job, each reproduced there before it became a test here.

Each test names what the other package gave. F1 and F2 also concern redundancy and neighbours,
features that are not here yet; what they say about ranks, scores and order holds already.
"""

import random
from dataclasses import replace
from typing import Any

import pytest

from oprag import Chunk, PositionKind, Span, arrange, build_context
from oprag.errors import MissingPositionError, PositionWarning
from oprag.positions.source_order import Listing, order_of
from oprag.positions.source_text import SourceText
from tests.helpers import cut, hit, prose, ranks, run_python, texts

TEXT = prose(80, seed=11)


def ten(text: str, rank: int, **metadata: Any) -> Chunk:
    """A chunk of ten tokens, one a word."""
    return hit(" ".join([text] * 10), rank, **metadata)


def words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize("given_first", [0, 2])
def test_f1_of_duplicates_the_best_ranked_is_kept(given_first):
    """LangChain's EmbeddingsRedundantFilter keeps rank 2 of a pair at ranks 0 and 2, and embeds all of them again."""
    twins = {rank: hit("same text", rank, chunk_index=5) for rank in (0, 2)}
    other = hit("other text", 1, chunk_index=7)
    context = build_context([twins[given_first], other, twins[2 - given_first]])
    assert ranks(context.kept) == [0, 1]
    assert [(drop.chunk.rank, drop.reason, drop.value) for drop in context.dropped] == [(2, "duplicate", 0)]


def test_f2_order_over_the_whole_source_and_no_score_lost():
    """LlamaIndex's PrevNextNodePostprocessor gives 6 7 8 1 2 3 4 for the hits 7, 2, 3, and the score of 2 is lost."""
    hits = [
        Chunk(f"node {number}", rank, score=score, metadata={"source": "book", "chunk_index": number})
        for rank, (number, score) in enumerate([(7, 0.9), (2, 0.8), (3, 0.7)])
    ]
    context = build_context(hits, gap="[gap]")
    assert context.text == "node 2\n\nnode 3\n\n[gap]\n\nnode 7"
    assert [(chunk.text, chunk.score) for chunk in context.kept] == [("node 2", 0.8), ("node 3", 0.7), ("node 7", 0.9)]


def test_f3_a_contained_chunk_repeats_nothing():
    """Haystack's merge_documents_text gives 60 characters for [0,40) [10,20) [30,50): it steps back and repeats."""
    context = build_context(cut(TEXT, [(0, 40), (10, 20), (30, 50)]))
    assert context.text == TEXT[:50]
    assert context.passages[0].spans == (Span(0, 50),)


def test_f4_a_gap_is_marked():
    """Haystack's merge_documents_text glues [0,10) and [30,40) together with nothing between them."""
    context = build_context(cut(TEXT, [(0, 10), (30, 40)]), gap="[...]")
    assert context.text == f"{TEXT[:10]}\n\n[...]\n\n{TEXT[30:40]}"


def test_f5_numeric_strings_sort_as_numbers():
    """Haystack's MetaFieldGroupingRanker sorts "10", "9", "100" as texts: 10, 100, 9."""
    chunks = [hit(f"part {number}", rank, split_id=number) for rank, number in enumerate(["10", "9", "100"])]
    assert texts(arrange(chunks)) == ["part 9", "part 10", "part 100"]


def test_f6_mixed_types_are_sorted_and_what_is_missing_comes_last():
    """Haystack's MetaFieldGroupingRanker leaves 3, "1", 2, None unsorted."""
    chunks = [hit(f"part {number}", rank, split_id=number) for rank, number in enumerate([3, "1", 2, None])]
    with pytest.warns(PositionWarning, match="have no position"):
        assert texts(arrange(chunks)) == ["part 1", "part 2", "part 3", "part None"]


@pytest.mark.parametrize("cut_by", [{"token_budget": 30, "count_tokens": words}, {"k": 3}])
def test_f7_a_cut_drops_the_worst_and_not_the_last_in_the_document(cut_by):
    """rag-chunk-reorder cuts after ordering: of positions 1, 2, 3, 90 with the best chunk at 90, it drops the best."""
    positions = [90, 3, 2, 1]
    chunks = [ten(f"w{position}", rank, chunk_index=position) for rank, position in enumerate(positions)]
    context = build_context(chunks, **cut_by)
    assert ranks(context.kept) == [2, 1, 0]
    assert [drop.chunk.rank for drop in context.dropped] == [3]


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
@pytest.mark.parametrize(("policy", "expected"), [("last", [2, 1, 0]), ("first", [0, 2, 1]), ("drop", [2, 1])])
def test_f8_a_chunk_without_a_position_stands_where_the_policy_says(policy, expected):
    """rag-chunk-reorder takes the rank for the position, so that the best chunk comes first wherever it stands."""
    chunks = [hit("nowhere", 0), hit("later", 1, chunk_index=40), hit("sooner", 2, chunk_index=30)]
    context = build_context(chunks, on_missing_position=policy)
    assert ranks(context.kept) == expected
    assert context.sources[0].missing == 1
    with pytest.raises(MissingPositionError):
        build_context(chunks, on_missing_position="error")


@pytest.mark.parametrize("token_budget", [15, 30, 31, 45])
def test_f9_headers_and_separators_count_against_the_budget(token_budget):
    """context-grid sends 38 tokens on a budget of 30: it counts the chunks, not what it writes around them."""
    chunks = [ten(f"w{rank}", rank, chunk_index=10 * rank) for rank in range(4)]
    context = build_context(
        chunks,
        token_budget=token_budget,
        count_tokens=words,
        header="[ {rank} ] {source}",
        separator="\n --- \n",
        gap="...",
    )
    assert words(context.text) == context.tokens <= token_budget
    # No chunk that would still fit is left out: a header is 4 tokens, a separator 1, a gap with two separators 3.
    assert len(context.kept) == 1 + max(0, (token_budget - 14) // 17)


def test_f10_sources_sort_naturally():
    """context-grid sorts documents as texts: doc10, doc2, doc9."""
    chunks = [hit(name, rank, source=name) for rank, name in enumerate(["doc2", "doc9", "doc10"])]
    random.Random(4).shuffle(chunks)
    assert texts(arrange(chunks, source_ranking="name")) == ["doc2", "doc9", "doc10"]
    assert texts(arrange(chunks)) == ["doc2", "doc9", "doc10"]


IN_EVERY_PROCESS = """
from oprag import Chunk, build_context
chunks = [
    Chunk(f"text {n}", n, id=f"id{n}", metadata={f"key {n % 7}": n, "source": f"doc{n % 5}", "row": 60 - n, "url": "u"})
    for n in range(60)
]
for source_ranking in ("best_first", "best_last", "score_sum", "name"):
    context = build_context(chunks, source_ranking=source_ranking, token_budget=100)
    print(context.text, context.explain())
"""


def test_f11_every_process_lays_the_documents_out_in_one_way():
    """dsRAG lays documents out by a set of their names, so that the same input differs from process to process."""
    outputs = {run_python(IN_EVERY_PROCESS, PYTHONHASHSEED=seed) for seed in ("0", "1", "4242")}
    assert len(outputs) == 1
    assert "doc4" in outputs.pop()


def test_f12_a_chunk_without_an_index_is_no_key_error():
    """dsRAG raises KeyError for a chunk without a chunk_index."""
    chunks = [hit("b", 0, chunk_index=1), hit("no index", 1), hit("a", 2, chunk_index=0)]
    with pytest.warns(PositionWarning, match="have no position"):
        assert texts(arrange(chunks)) == ["a", "b", "no index"]
    with pytest.raises(MissingPositionError, match="1 of 3 chunks have no position") as caught:
        arrange(chunks, on_missing_position="error")
    assert caught.value.value.text == "no index"


def split_by_words(text: str) -> list[tuple[str, int]]:
    """As users of LangChain split by a number of words or tokens, with overlap."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    splitter = RecursiveCharacterTextSplitter(
        chunk_size=20, chunk_overlap=6, length_function=words, add_start_index=True
    )
    return [(document.page_content, document.metadata["start_index"]) for document in splitter.create_documents([text])]


def test_f13_an_offset_of_minus_one_is_no_place_in_the_text():
    """LangChain's splitters write start_index -1 with an overlap in words; sorted plainly, these chunks come first."""
    text = prose(400, seed=1)
    pieces = split_by_words(text)
    lost = [piece for piece, start in pieces if start == -1]
    assert lost, "the splitter has learned to find its chunks"
    order = list(range(len(pieces)))
    random.Random(0).shuffle(order)
    chunks = [hit(pieces[number][0], rank, start_index=pieces[number][1]) for rank, number in enumerate(order)]
    with pytest.warns(PositionWarning, match="have no position"):
        context = build_context(chunks, stitch=False)
    assert [text for text in texts(context.kept) if text not in lost] == [
        piece for piece, start in pieces if start != -1
    ]
    # Those that overlap no other chunk that was retrieved come last.
    (source,) = context.sources
    assert (source.kind, source.missing < len(lost)) == (PositionKind.OFFSET, True)
    assert set(texts(context.kept[len(pieces) - source.missing :])) <= set(lost)
    # And the way out: the original text says where they stand.
    places = order_of(Listing(chunks), text=SourceText(text)).places
    placed = [replace(chunk, place=place) for chunk, place in zip(chunks, places, strict=True)]
    assert texts(arrange(placed)) == [piece for piece, _ in pieces]


@pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")
def test_f13_offsets_that_are_all_wrong_lose_and_repeat_no_chunk():
    """In a repeating text LangChain's start_index runs 0 … 1080, -1, 64 …: neither rising nor true."""
    pieces = split_by_words("one two three. " * 80)
    starts = [start for _, start in pieces]
    assert starts != sorted(starts), "the splitter has learned to find its chunks"
    context = build_context([hit(piece, rank, start_index=start) for rank, (piece, start) in enumerate(pieces)])
    assert sorted([*ranks(context.kept), *(drop.chunk.rank for drop in context.dropped)]) == list(range(len(pieces)))
    assert all(drop.reason == "duplicate" for drop in context.dropped)
    # Chunks of 68 characters, of which 4 words may overlap.
    assert words(context.text) >= sum(words(piece) - 6 for piece, _ in pieces)


def test_f14_a_repeating_text_is_not_stitched_by_offsets():
    """LlamaIndex finds start_char_idx by searching; in a repeating text it stops too early, by a factor of 2."""
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document, TextNode

    line = "The same line comes again and again. "
    splitter = SentenceSplitter(chunk_size=60, chunk_overlap=0, tokenizer=str.split)
    nodes = [node for node in splitter([Document(text=line * 200)]) if isinstance(node, TextNode)]
    offsets = [node.start_char_idx or 0 for node in nodes]
    assert offsets[-1] < len(line) * 200 / 2, "LlamaIndex has learned to find its nodes"
    chunks = [
        Chunk(node.text, rank, source="book", span=Span(start, start + len(node.text)))
        for rank, (node, start) in enumerate(zip(nodes, offsets, strict=True))
    ]
    context = build_context(chunks)
    assert len(context.kept) == len(nodes)
    assert context.text.count(line.strip()) == 200


def test_f15_reordering_repeats_no_chunk():
    """AutoRAG's long_context_reorder appends a copy of the best passage to the end instead of moving it."""
    chunks = [hit(f"text {rank}", rank, chunk_index=rank) for rank in range(7)]
    for order in ("source", "rank", "reverse_rank", "edges", "random"):
        assert sorted(ranks(arrange(chunks, order=order))) == list(range(7))
        assert sorted(ranks(build_context(chunks, order=order).kept)) == list(range(7))
