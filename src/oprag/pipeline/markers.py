"""Markers, which cite passages by their numbers, such as [1]."""

from __future__ import annotations

import re

__all__ = ["MARKER", "without_markers"]

MARKER = re.compile(r"\[(\d{1,6}(?:\s*(?:[,;\-–—]|,?\s?(?:and|&)\s)\s*\d{1,6})*)\]")
"""Matches [1], and also [1, 3], [1; 3], [1-3] or [1, 2 and 4], which some models write."""


def without_markers(text: str) -> str:
    """The text with spaces inside the brackets of markers, so that they are not read as markers."""
    return MARKER.sub(r"[ \1 ]", text) if "[" in text else text
