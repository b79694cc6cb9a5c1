import dataclasses
import json
import math
import pickle
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, Context, ContextOptions, build_context
from oprag.chunk import Place, PositionKind, Span
from oprag.context import ContextInputs, assemble
from oprag.errors import TokenizerError
from oprag.positions.retrieved import SearchedStore
from tests.helpers import cut, hit, prose

TEXT = prose(80)
# The example has a chunk without a position.
pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.PositionWarning")


def example(**options: Any) -> Context:
    chunks = [
        *cut(TEXT, [(300, 340), (0, 60), (40, 100)]),
        Chunk("no position", 3, score=0.25, metadata={"source": "book"}),
        Chunk("other source", 4, score=math.nan, metadata={"source": "2nd\nbook", "page": "iv"}),
    ]
    return build_context(chunks, **{"k": 4, "token_budget": 1000, "count_tokens": len, **options})


def test_the_text_is_what_a_prompt_takes():
    context = example()
    assert str(context) == context.text == f"{TEXT[:100]}\n\n{TEXT[300:340]}\n\nno position"


def test_a_context_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        example().text = ""


def test_a_counter_that_counts_nothing_usable_is_refused_when_asked_for():
    context = example(token_budget=None, count_tokens=lambda text: "many")
    with pytest.raises(TokenizerError):
        _ = context.tokens


def test_a_dict_holds_everything_as_json_can():
    context = example()
    data = json.loads(json.dumps(context.to_dict(), allow_nan=False))
    assert data["text"] == context.text
    assert data["tokens"] == len(context.text)
    assert (data["token_budget"], data["order"], data["tokens_are_approximate"]) == (1000, "source", False)
    assert data["freed_tokens"] == context.freed_tokens
    assert data["passages"][0] == {
        "source": "book",
        "spans": [{"start": 0, "end": 100, "page": None}],
        "ranks": [1, 2],
        "text": TEXT[:100],
    }
    assert data["kept"][0] == {
        "rank": 1,
        "score": None,
        "similarity": None,
        "id": None,
        "source": "book",
        "position": [0, 60],
        "kind": "offset",
        "span": {"start": 0, "end": 60, "page": None},
        "neighbor_of": None,
    }
    assert (data["kept"][-1]["score"], data["kept"][-1]["position"], data["kept"][-1]["kind"]) == (0.25, None, "none")
    assert data["dropped"] == [
        {
            "rank": 4,
            "score": None,
            "similarity": None,
            "id": None,
            "source": "2nd\nbook",
            "position": [0, 4],
            "kind": "page",
            "span": None,
            "neighbor_of": None,
            "reason": "k",
            "value": 4,
            "detail": "not among the first 4",
            "twin": None,
            "displaced_by": [],
        }
    ]
    assert data["sources"] == [
        {"source": "book", "kind": "offset", "field": "start_index", "chunks": 4, "missing": 1, "runs": 1},
        {"source": "2nd\nbook", "kind": "page", "field": "page", "chunks": 1, "missing": 0, "runs": 1},
    ]


@pytest.mark.parametrize(
    "metadata",
    [
        {"chunk_index": np.int64(3)},
        {"chunk_index": 2.5},
        {"page": np.float32(2), "start_index": np.int32(5), "end_index": np.int32(9)},
        {"page_label": "A-3", "start_index": 5},
        {"page_label": np.str_("iv")},
        {"start_index": 10**60},
        {"source": 5.0, "row": "7"},
        {"source": "half a pair \ud800", "title": object()},
    ],
)
@pytest.mark.parametrize("score", [None, 0.5, np.float32(0.5), math.inf, 1])
def test_a_dict_is_json_whatever_the_metadata(metadata, score):
    context = build_context([Chunk("text", 0, score=score, metadata={"source": "book", **metadata})], k=1)
    (kept,) = json.loads(json.dumps(context.to_dict(), allow_nan=False))["kept"]
    assert kept["position"] is not None or "title" in metadata
    assert kept["score"] == (None if score in (None, math.inf) else score)


def table(report: str, title: str) -> list[list[str]]:
    lines = report.split("\n")
    start = lines.index(title)
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split() for line in lines[start + 1 : end]]


def test_the_report_says_how_sources_were_placed_what_was_kept_and_what_was_dropped():
    context = example()
    report = context.explain()
    assert report.startswith(f"4 chunks in 3 passages, order source (unknown), {len(context.text)} of 1,000 tokens, ")
    assert "; 1 dropped" in report.split("\n")[0]
    assert table(report, "sources")[1:] == [
        ["book", "4", "1", "kind", "3,", "offset:", "start_index"],
        ["2nd?book", "1", "0", *["kind", "5,", "page", "or", "number:", "page"]],
    ]
    assert table(report, "kept, in order")[1:] == [
        ["1", "1", "-", "book", "0", "0–60"],
        ["1", "2", "-", "book", "40", "40–100"],
        ["2", "0", "-", "book", "300", "300–340"],
        ["3", "3", "0.250", "book", "-", "-"],
    ]
    dropped = table(report, "dropped")[1]
    assert dropped[:3] == ["4", "nan", "2nd?book"]
    assert dropped[-6:] == ["k", "not", "among", "the", "first", "4"]


def test_the_report_shows_pages_and_offsets_on_them():
    chunks = [hit("b", 0, page="iv", start_index=1200), hit("a", 1, page="iv", start_index=0)]
    report = build_context([*chunks, hit("c", 2, source="slides", page=7)]).explain()
    assert table(report, "kept, in order")[1:] == [
        ["1", "1", "-", "book", "p.", "iv:", "0", "p.", "iv:", "0–1"],
        ["2", "0", "-", "book", "p.", "iv:", "1200", "p.", "iv:", "1,200–1,201"],
        ["3", "2", "-", "slides", "p.", "7", "-"],
    ]


def test_the_report_says_how_many_runs_of_linked_chunks_have_an_unknown_order():
    chunks = [
        Chunk(name, rank, source="book", id=name, previous_id=before)
        for rank, (name, before) in enumerate([("d", "c"), ("b", "a"), ("c", None), ("a", None)])
    ]
    assert "; 2 runs whose order is unknown" in build_context(chunks).explain()
    assert "runs whose order" not in build_context([chunks[0], chunks[2]]).explain()


def test_the_report_numbers_chunks_as_they_were_added_to_the_store():
    places = [Place(key, PositionKind.STORE, "Store", Span(900, 901)) for key in ((3, 12), (0, 2))]
    chunks = [
        Chunk(text, rank, source="a", place=place) for rank, (text, place) in enumerate(zip("ab", places, strict=True))
    ]
    rows = [line.split() for line in build_context(chunks).explain().splitlines()]
    assert [row[4] for row in rows if row[2:4] == ["-", "a"]] == ["2", "12"]


def test_the_report_of_one_chunk_reads_well():
    context = build_context([hit("text", 0, chunk_index=3)], count_tokens=len)
    assert context.explain().startswith("1 chunk in 1 passage, order source, 4 tokens; 0 dropped")
    assert "\n\ndropped" not in context.explain()


@pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")
def test_the_report_says_what_is_not_known():
    report = build_context([Chunk("a", 0), Chunk("b", 1)]).explain()
    assert table(report, "sources")[1] == ["(unknown)", "1", "1", "kind", "7,", "none"]


def test_every_line_of_the_report_is_one_line():
    context = build_context([hit("text", 0, source="a\nb\x1b[31m\u2028c", page_label="x\ty")])
    assert len([line for line in context.explain().splitlines() if "a?b" in line]) == 2
    assert "\x1b" not in context.explain()


def test_a_pickled_context_keeps_what_was_searched_for_warnings():
    """A store may hold a connection."""
    searched = SearchedStore("7", "check_positions(store)")
    context = assemble(ContextInputs([hit("a", 0)], store=lambda: searched), ContextOptions())
    again = pickle.loads(pickle.dumps(context))
    assert again.inputs.store() == searched


# --- reprs ---

HOSTILE = "<script>alert('x')</script>\u202e\ud800\0\x1b[31m&\"" + "x" * 5_000


def test_reprs_are_one_short_line():
    context = build_context(
        [
            hit(
                f"{number}\n" + prose(200),
                number,
                source=f"{'name ' * 100}{number % 3}",
                chunk_index=2 * number,
                x="y" * 9_000,
            )
            for number in range(100)
        ],
        k=90,
        count_tokens=len,
    )
    assert repr(context) == "Context(90 passages of 3 sources, 90 chunks kept, 10 dropped (10 by k))"
    tokens = context.tokens
    assert repr(context).endswith(f"10 dropped (10 by k), {tokens:,} tokens)")
    for shown in (repr(context), repr(context.kept[0]), repr(context.passages[0]), repr(context.dropped[0])):
        assert len(shown) < 400
        assert "\n" not in shown
    assert repr(Chunk("a", 3)) == "Chunk(rank=3, source=None, position=None, 1 character: 'a')"
    assert repr(Chunk("a text", 3)) == "Chunk(rank=3, source=None, position=None, 6 characters: 'a text')"
    assert repr(example().passages[0]).startswith(
        f"Passage(source='book', 2 chunks, 100 characters: {TEXT[:59]!r}"[:-1]
    )
    assert repr(example().kept[0]).startswith("Chunk(rank=1, source='book', position=OFFSET, 60 characters: ")
    assert repr(build_context([])) == "Context(0 passages of 0 sources, 0 chunks kept, 0 dropped)"
