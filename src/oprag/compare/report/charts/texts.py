"""How wide text is, and where it breaks; about, since the reader's font is not known."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

__all__ = ["SMALL", "clipped", "text_width", "wrapped"]

SMALL = 12
"""The size of text, in pixels of a drawing that is as wide as a phone."""

_NARROW = frozenset("ijltfrI.,:;'|!()[]{}/\\ ·-")
_WIDE = frozenset("mwMW@%—…")


def text_width(text: str, size: float) -> float:
    """How wide the text is in a common font without serifs, rather too much than too little.

    Args:
        text: One line.
        size: The size of the font.
    """
    return size * sum(map(_width, text))


def _width(letter: str) -> float:
    if letter in _NARROW:
        return 0.36
    if letter in _WIDE:
        return 0.95
    if combining(letter):
        return 0.0
    if east_asian_width(letter) in "WF":
        return 1.05
    return 0.7 if letter.isupper() else 0.6


def clipped(text: str, width: float, size: float) -> str:
    """The text, without its end where it would be wider than that."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…"


def wrapped(text: str, width: float, size: float, most: int) -> list[str]:
    """The text in lines that are at most so wide; a word that is too long is broken, and the last line clipped.

    Args:
        text: The text; white space counts as one space each.
        width: The width of a line.
        size: The size of the font.
        most: How many lines.
    """
    lines: list[str] = []
    rest = " ".join(text.split())
    while rest:
        if len(lines) == most - 1:
            return [*lines, clipped(rest, width, size)]
        line = _first_line(rest, width, size)
        lines.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return lines


def _first_line(text: str, width: float, size: float) -> str:
    end, room = 0, width
    while end < len(text) and (room := room - size * _width(text[end])) >= 0:
        end += 1
    if end == len(text):
        return text
    end = max(1, end)
    # A space, or else behind a sign within a name, but not so early that the line is mostly empty.
    if text[end] == " ":
        return text[:end]
    for signs in (" ", "/,;:_-=.·"):
        border = max(text.rfind(sign, 0, end) for sign in signs) + 1
        if border > end / 3:
            return text[:border]
    return text[:end]
