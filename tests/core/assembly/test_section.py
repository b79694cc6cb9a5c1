"""The section of a chunk, from the metadata that splitters and parsers write, in headers and outlines."""

from typing import Any

import pytest

from oprag import Chunk, build_context
from oprag.assembly.section import section_of


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
        ({"Header 1": "x" * 500}, "x" * 100),
        ({"dl_meta": [1], "Header 1": None, 5: "no key"}, ""),
    ],
)
def test_headings_are_read_as_tools_write_them(metadata: dict[Any, Any], section: str):
    assert section_of(Chunk("text", 0, metadata=metadata)) == section


def test_a_header_shows_the_section_of_the_start_of_a_passage():
    chunks = [
        Chunk("One. ", 0, "manual", {"start_index": 0, "Header 1": "Install {source}"}),
        Chunk("Two.", 1, "manual", {"start_index": 5, "Header 1": "Remove"}),
    ]
    context = build_context(chunks, header="# {source}: {section}")
    assert context.text == "# manual: Install {source}\nOne. Two."
    assert build_context([Chunk("One.", 0, "manual")], header="{section}|").text == "|\nOne."
