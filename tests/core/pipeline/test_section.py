"""The section of a chunk, from the metadata that splitters and parsers write, else from the headings of its source."""

import json
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, Context, WorkingContext, build_context, neighbors_among
from oprag._internal.warn import forget
from oprag.chunk import changed
from oprag.errors import RetrievalWarning
from oprag.methods import Answer
from oprag.pipeline.render import section_of


@pytest.mark.parametrize(
    ("metadata", "section"),
    [
        ({}, ""),
        ({"headings": ["Install", "On Windows"]}, "Install > On Windows"),
        ({"dl_meta": {"headings": ["Install"]}}, "Install"),
        ({"dl_meta.headings": ("Install",)}, "Install"),
        ({"Header 2": "On Windows", "Header 1": "Install"}, "Install > On Windows"),
        ({"h1": "Install", "h3": "Paths"}, "Install > Paths"),
        ({"header_path": "/Install/On Windows/"}, "Install > On Windows"),
        ({"header_path": "/"}, ""),
        ({"section": "Install", "title": "The manual"}, "Install"),
        ({"title": "The manual"}, ""),
        # What is no heading is left out, and one stays on its line.
        ({"headings": ["Install", 7, None, "  ", "On\nWindows"]}, "Install > On Windows"),
        ({"headings": "Install", "section": 3}, ""),
        ({"section": np.arange(3), "heading": "Install"}, "Install"),
        ({"Header 1": "x" * 500}, "x" * 100),
        ({"dl_meta": [1], "Header 1": None, 5: "no key"}, ""),
    ],
)
def test_headings_are_read_as_tools_write_them(metadata: dict[Any, Any], section: str):
    assert section_of(Chunk("text", 0, metadata=metadata)) == section


def test_a_header_shows_the_section_of_the_start_of_a_passage():
    chunks = [
        Chunk("One. ", 0, "manual", {"page": 1, "start_index": 0, "Header 1": "Install {source}"}),
        Chunk("Two.", 1, "manual", {"page": 1, "start_index": 5, "Header 1": "Remove"}),
    ]
    context = build_context(chunks, header="# {source}: {section}")
    assert context.text == "# manual: Install {source}\nOne. Two."
    assert build_context([Chunk("One.", 0, "manual")], header="{section}|").text == "|\nOne."


def sections(texts: Sequence[str], source: str = "manual.md", **options: Any) -> list[str]:
    """The sections that the headers of all chunks of a source show, with the chunks in the order of the source."""
    chunks = stored(texts, source)
    given: dict[str, Any] = {"read_neighbors": neighbors_among(chunks), "header": "{section}|", "stitch": False}
    return shown(build_context(chunks[::-1], **given | options))


def stored(texts: Sequence[str], source: str = "manual.md") -> list[Chunk]:
    return [
        Chunk(text, len(texts) - number, source, {"chunk_index": number}, id=f"{source}-{number}")
        for number, text in enumerate(texts)
    ]


def shown(context: Context) -> list[str]:
    return [line.removesuffix("|") for line in context.text.splitlines() if line.endswith("|")]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Each chunk is under the headings before its start, or those that it begins with.
        (
            ["Before.", "# Install\n\nText.", "Text.\n\n## On Windows\n\nText.", "Text.", "# Use", "Text."],
            ["", "Install", "Install", "Install > On Windows", "Use", "Use"],
        ),
        (["# Guide\n## Install\n\nText.\n\n## Use", "Text."], ["Guide > Install", "Guide > Use"]),
        (["# Guide", "## Install\n\nText."], ["Guide", "Guide > Install"]),
        (["### Deep\n\nText.", "## Less deep\n\nText."], ["Deep", "Less deep"]),
        # Overlaps occur once: the third chunk begins before the heading that it contains.
        (
            ["# One\n\nThe text is short.", "The text is short.\n\n## Two\n\nMore text here."],
            ["One", "One"],
        ),
        (
            ["# One\n\nA sentence that is repeated.\n\n# Two", "A sentence that is repeated.\n\n# Two\n\nText."],
            ["One", "One"],
        ),
        # Comments in code are not headings.
        (["# Install\n\n```sh\n# a comment\n", "make\n# another\n```\n\nText.", "Text."], ["Install"] * 3),
        (["Text.", "Text too."], ["", ""]),
    ],
)
def test_the_section_is_read_from_the_headings_of_the_source(texts: list[str], expected: list[str]):
    assert sections(texts) == expected


def test_hostile_headings_are_cut_and_stay_on_their_line():
    (long, control) = sections([f"# {'x' * 10_000}\n\nText.", "# a\x1b[31m\u2028b [1]\tc\x00\n\nText."])
    assert len(long) == 100
    assert "\x1b" not in control
    assert "\x00" not in control
    assert "[1]" not in control
    deep = sections(["\n".join(f"{'#' * level} {str(level) * 5_000}" for level in range(1, 7))])
    assert len(deep[0]) == 6 * 100 + 5 * len(" > ")


def test_a_passage_has_the_section_of_its_first_chunk():
    chunks = stored(["# One\n\nText. ", "More. \n\n# Two\n\n", "Text."])
    placed = [
        Chunk(chunk.text, chunk.rank, chunk.source, {"start_index": start}, id=chunk.id)
        for chunk, start in zip(chunks, (0, 13, 28), strict=True)
    ]
    context = build_context(placed, read_neighbors=neighbors_among(placed), header="{section}|")
    assert context.text == "One|\n# One\n\nText. More. \n\n# Two\n\nText."
    # Nothing that users see of a chunk changes.
    assert [(chunk.text, dict(chunk.metadata)) for chunk in context.kept] == [
        (chunk.text, dict(chunk.metadata)) for chunk in placed
    ]
    cited = Answer("Who?", "See [1].", "stuff", (), (), passages=context.passages, cited=True).citations
    assert [citation.section for citation in cited] == ["One"]
    assert cited[0].to_dict()["section"] == "One"


class Reads:
    """Reads neighbors, and remembers the sources."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._read = neighbors_among(chunks)
        self.asked: list[str | None] = []

    def __call__(self, chunk: Chunk, number: int) -> Any:
        self.asked.append(chunk.source)
        return self._read(chunk, number)


def test_sources_are_read_once_and_at_most_ten():
    sources = [stored(["# One\n\nText.", f"Text {number}."], f"{number}.md") for number in range(12)]
    hits = [changed(chunks[1], rank=rank) for rank, chunks in enumerate(sources)]
    reads = Reads([chunk for chunks in sources for chunk in chunks])
    context = build_context(hits, read_neighbors=reads, header="{section}|")
    assert shown(context) == ["One"] * 10 + [""] * 2
    assert reads.asked == [f"{number}.md" for number in range(10)]
    # Neither a rebuild nor a source that is taken whole reads them again.
    assert context.with_thresholds(min_chunks=1).text == context.text
    again = pickle.loads(pickle.dumps(context))
    assert again.with_thresholds(min_chunks=1).text == context.text
    assert len(reads.asked) == 10
    reads.asked.clear()
    whole = build_context(hits[:2], read_neighbors=reads, header="{section}|", whole_source_tokens=99, stitch=False)
    assert shown(whole) == ["One"] * 4
    assert reads.asked == ["0.md", "1.md"]


@pytest.mark.parametrize("budget", [60, 99, 150])
def test_the_section_counts_for_the_token_budget(budget: int):
    chunks = stored([f"# A long heading over {number}\n\nText." for number in range(6)])
    options: dict[str, Any] = {"count_tokens": len, "token_budget": budget, "stitch": False}
    context = build_context(chunks, header="{section}|", read_neighbors=neighbors_among(chunks), **options)
    assert context.tokens == len(context.text) <= budget
    assert len(context.kept) == (budget + 2) // 55
    assert shown(context) == [f"A long heading over {chunk.metadata['chunk_index']}" for chunk in context.kept]


def test_a_source_that_cannot_be_read_has_no_section():
    chunks = stored(["# One\n\nText.", "Text."])

    def broken(chunk: Chunk, number: int) -> Any:
        raise OSError("the store is closed")

    with pytest.warns(RetrievalWarning, match=r"\{section\} in header= is empty.*the store is closed") as told:
        assert shown(build_context(chunks, read_neighbors=broken, header="{section}|", stitch=False)) == ["", ""]
    assert len(str(told[0].message)) <= 200
    # Once.
    other: dict[str, Any] = {"read_neighbors": lambda chunk, number: ["a text"], "header": "{section}|"}
    assert shown(build_context(chunks, **other)) == [""]
    forget()
    with pytest.warns(RetrievalWarning, match=r"expected oprag\.Chunk objects as neighbors, got str"):
        assert shown(build_context(chunks, **other)) == [""]
    assert shown(build_context(chunks, read_neighbors=lambda chunk, number: [], header="{section}|")) == [""]
    # Where the order is unknown, headings are no help.
    unordered = [Chunk(chunk.text, chunk.rank, chunk.source, id=chunk.id) for chunk in chunks]
    read: dict[str, Any] = {"read_neighbors": lambda chunk, number: unordered, "on_uncertain": "ignore"}
    assert shown(build_context(unordered, **read, header="{section}|")) == ["", ""]


def test_a_function_may_leave_out_the_chunk_itself():
    chunks = stored(["# One\n\nText.", "Text.", "## Two\n\nText.", "More."])
    others = [one for one in chunks if one.rank != chunks[2].rank]
    context = build_context([chunks[2]], read_neighbors=lambda chunk, number: others, header="{section}|")
    assert shown(context) == ["One > Two"]


def test_a_working_context_keeps_the_sections_of_a_search():
    chunks = stored(["# One\n\nText.", "More."])
    found = build_context(chunks, read_neighbors=neighbors_among(chunks), header="{section}|", stitch=False)
    working = WorkingContext(header="{section}|")
    assert "One|\nMore." in working.add([found.kept[1]]).text
    again = WorkingContext.from_dict(json.loads(json.dumps(working.to_dict())), header="{section}|")
    assert again.context().text == working.context().text == "One|\nMore."
