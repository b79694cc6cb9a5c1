"""The outline of a source: what counts as a heading, where entries begin and end, and that splits do not matter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Span
from oprag.agents.outline import OutlineEntry, outline_entries

Headings = list[tuple[int, str]]


def chunks_of(texts: Sequence[str], **metadata: Any) -> list[Chunk]:
    """Chunks without offsets."""
    return [Chunk(text, rank, source="a.md", metadata=metadata) for rank, text in enumerate(texts)]


def cut(text: str, spans: Sequence[tuple[int, int]]) -> list[Chunk]:
    """Chunks with offsets."""
    return [
        Chunk(text[start:end], rank, source="a.md", span=Span(start, end)) for rank, (start, end) in enumerate(spans)
    ]


def headings(chunks: Sequence[Chunk], source: str = "a.md") -> Headings:
    """The headings of an outline; none if it has equal parts instead."""
    entries = [(entry.level, entry.title) for entry in outline_entries(chunks, source)]
    return [entry for entry in entries if entry[0] and entry[1] != "(before the first heading)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("# A\ntext\n## B\ntext", [(1, "A"), (2, "B")], id="ATX headings"),
        pytest.param("# A ##\n#\tB # \t\n###### C", [(1, "A"), (1, "B"), (6, "C")], id="closing marks"),
        pytest.param("A\n===\n\nB\n---\n", [], id="setext headings are not found"),
        pytest.param("#A\n #B\n####### C\n\\# D\ntext # E\n    # F", [], id="other lines with number signs"),
        pytest.param("# A\n```\n# no\n```\n# B", [(1, "A"), (1, "B")], id="fence"),
        pytest.param("# A\n```sh\n# no\n```\n# B", [(1, "A"), (1, "B")], id="fence with a language"),
        pytest.param("# A\n~~~\n```\n# no\n~~~\n# B", [(1, "A"), (1, "B")], id="a fence in another kind of fence"),
        pytest.param("# A\n````\n```\n# no\n```\n````\n# B", [(1, "A"), (1, "B")], id="a fence in a longer one"),
        pytest.param("# A\n```x``` y\n# B", [(1, "A"), (1, "B")], id="inline code is not a fence"),
        pytest.param("1. x\n   ```\n# no\n   ```\n# A\n# B", [(1, "A"), (1, "B")], id="indented fence"),
        pytest.param("# A\n# B\n```\n# no", [(1, "A"), (1, "B")], id="a fence without an end"),
        pytest.param("# A\r\n\r\ntext\r\n## B\r\n", [(1, "A"), (2, "B")], id="Windows line breaks"),
        pytest.param("# [3]\n# A [1, 2]\x1b[0m", [(1, "[ 3 ]"), (1, "A [ 1, 2 ]?[0m")], id="numbers of passages"),
        pytest.param("", [], id="empty"),
    ],
)
def test_lines_that_are_headings(text: str, expected: Headings):
    assert headings(chunks_of([text])) == expected


def test_entries_end_where_the_next_one_begins():
    texts = ["Before.\n# One\nText.", "More.\n\n## A\nText.", "Text.\n## B\nText.\n# Two", "Text.", "# Three", "### C"]
    assert outline_entries(chunks_of(texts), "a.md") == [
        OutlineEntry(1, "(before the first heading)", 0, 0),
        OutlineEntry(1, "One", 0, 2),
        OutlineEntry(2, "A", 1, 2),
        OutlineEntry(2, "B", 2, 2),
        OutlineEntry(1, "Two", 2, 3),
        # Their headings begin a chunk.
        OutlineEntry(1, "Three", 4, 5),
        OutlineEntry(3, "C", 5, 5),
    ]
    assert outline_entries(chunks_of(["x", *texts[4:]]), "a.md")[0] == OutlineEntry(
        1, "(before the first heading)", 0, 0
    )


# Overlaps.


def test_offsets_that_the_text_contradicts_are_ignored():
    chunks = [
        Chunk(text, rank, source="a.md", span=Span(start, start + len(text)))
        for rank, (text, start) in enumerate([("# A\n```\n# no\n", 40), ("# no\n```\n# B", 2)])
    ]
    assert headings(chunks) == [(1, "A"), (1, "B")]


# Other sources.

SPACED = "# One\n\nText.\n\n## Two\n\nText."
COMMENTS = "# Set the limit\nlimit = 3\n\n# Run it\nrun(limit)\n\n# a\n# b\n"


@pytest.mark.parametrize(
    "source",
    ["a.md", "A.MD", "docs/a.markdown", "a.mdx", "a.Rmd", "a.qmd", "https://x.org/a.md?raw=1", "https://x.org/a.md#b"],
)
def test_a_markdown_extension_is_trusted(source: str):
    assert len(headings(chunks_of([COMMENTS]), source)) == 4


@pytest.mark.parametrize(
    "source",
    [
        *(
            "a.py",
            "Makefile",
            "Dockerfile",
            "main.tf",
            "setup.ps1",
            "requirements.txt",
            "deploy.bash",
            "notes",
            ".md/x",
        ),
        *("https://x.org/a.py?raw=1", "https://x.org/a?file=b.md", "https://x.org/", "Release 1.2", "report.pdf"),
    ],
)
def test_elsewhere_headings_stand_between_blank_lines(source: str):
    assert headings(chunks_of([COMMENTS]), source) == []
    assert headings(chunks_of([SPACED]), source) == [(1, "One"), (2, "Two")]
    # White space that a splitter stripped was a blank line, too.
    parts = SPACED.split("\n\n")
    assert headings(chunks_of(parts), source) == [(1, "One"), (2, "Two")]


def test_headings_come_before_sections_and_sections_before_pages():
    def chunks(texts: str = "Text.", **more: str) -> list[Chunk]:
        return [
            Chunk(
                texts,
                n,
                metadata={"page": n // 2, "title": "The same"} | {key: values[n] for key, values in more.items()},
            )
            for n in range(4)
        ]

    assert outline_entries(chunks(), "a") == [OutlineEntry(0, "page 0", 0, 1), OutlineEntry(0, "page 1", 2, 3)]
    some = [*chunks(), Chunk("Text.", 4)]
    assert [entry.title for entry in outline_entries(some, "a")] == ["begins “Text.”"] * 5
    assert outline_entries(chunks(Section="AAAB"), "a") == [OutlineEntry(1, "A", 0, 2), OutlineEntry(1, "B", 3, 3)]
    assert [entry.title for entry in outline_entries(chunks("# X", Section="AAAB"), "a.md")] == ["X"] * 4
    by_metadata = outline_entries(chunks("# X", Section="AAAB", h2="CCDD"), "a.md")
    assert by_metadata == [OutlineEntry(1, "C", 0, 1), OutlineEntry(1, "D", 2, 3)]


# Any split.

block = st.sampled_from(
    [
        "paragraph",
        "heading",
        "heading",
        "fence",
        "code with comments",
        "code with an empty line",
        "tilde fence",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, Headings]:
    """A Markdown text whose words are all different, and its headings."""
    parts: list[str] = []
    found: Headings = []
    for number, kind in enumerate(["heading", "heading", *draw(st.lists(block, max_size=12))]):
        word = f"word{number:04}"
        if kind == "heading":
            level = draw(st.integers(1, 6))
            parts.append(f"{'#' * level} Title {word}")
            found.append((level, f"Title {word}"))
            continue
        mark = "~~~" if kind == "tilde fence" else "```"
        code = (
            f"# {word} comment\nrun {word}" + ("\n\n" if kind == "code with an empty line" else "\n") + f"# {word} end"
        )
        parts.append(f"A {word} paragraph {word}." if kind == "paragraph" else f"{mark}\n{code}\n{mark}")
    return draw(st.sampled_from(["\n", "\n\n"])).join(parts), found


@given(document=documents(), data=st.data())
def test_headings_do_not_depend_on_a_split_with_offsets(document: tuple[str, Headings], data: st.DataObject):
    text, expected = document
    edges = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=20))})
    overlaps = st.integers(0, data.draw(st.sampled_from([0, 10, 60])))
    spans: list[tuple[int, int]] = []
    for edge, end in pairwise(edges):
        spans.append((max(edge - data.draw(overlaps), spans[-1][0] if spans else 0), end))
    chunks = cut(text, spans)
    assert headings(chunks) == expected
    # The first chunk of an entry is the first one that contains the start of its heading.
    rows = {entry.title: entry.first for entry in outline_entries(chunks, "a.md")}
    for level, title in expected:
        start = text.index(f"{'#' * level} {title}")
        assert rows[title] == next(row for row, (_, end) in enumerate(spans) if end > start)


# Work.


class CountingText(str):
    """A text that counts the characters with which its start is compared."""

    __slots__ = ()
    compared = 0

    def startswith(self, prefix: Any, *args: Any) -> bool:
        CountingText.compared += len(prefix)
        return super().startswith(prefix, *args)


def test_repeating_text_is_compared_a_limited_number_of_times():
    compared = []
    for size in (2_000, 4_000):
        CountingText.compared = 0
        lines = "# a\n" * size
        chunks = [Chunk(f"{lines}# b", 0), Chunk(CountingText(f"{lines}# c"), 1)]
        assert len(outline_entries(chunks, "a.md")) == 2 * (size + 1)
        compared.append(CountingText.compared)
    assert 0 < compared[1] <= 2.1 * compared[0]
