"""Plain values as TOML has them; Python reads TOML and does not write it."""

from __future__ import annotations

import json
import re
from datetime import date, time
from typing import Any

from oprag.errors import OptionError

__all__ = ["key_text", "value_text"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key_text(name: str) -> str:
    """A key, in quotes where it needs them."""
    return name if _BARE.fullmatch(name) else _quoted(name)


def value_text(value: Any) -> str:
    """A text, number, boolean, date, time, or a list or tuple of such values.

    Raises:
        OptionError: A text is none that a file can hold, or an integer has more than 64 bits.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OptionError("an integer has more than 64 bits, which TOML does not have", value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, str):
        # A prompt is read by people; line breaks at its ends are seen better as escapes.
        return _lines(value) if "\n" in value.strip("\n") else _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _lines(text: str) -> str:
    escaped = "\n".join(map(_escaped, text.split("\n")))
    if '""' not in text and not text.endswith('"'):
        escaped = escaped.replace(r"\"", '"')  # one alone ends nothing
    # A line break right behind the opening quotes is none of the text.
    return f'"""\n{escaped}"""'


def _escaped(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise OptionError(f"half a character in a text, which no file can hold: {text!r}", text) from error
    # JSON escapes as TOML does, but for one control character.
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", r"\u007f")
