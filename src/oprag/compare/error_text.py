"""What an error says, on one line and without secrets.

Errors become text here, and the results file and the command line mask once more what they write or print.
"""

from __future__ import annotations

import os
import re

from oprag.compare.storable import storable

__all__ = ["message_of", "named_message", "without_keys"]

_MASK = "***"
_SECRET_NAME = re.compile(r".*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|AUTH)", re.IGNORECASE)
_SHORTEST = 12  # characters of a value in the environment that is taken for a secret; shorter ones may be words

_KEYS = (
    # Keys that providers make, such as sk-…, hf_… and AIza….
    re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai|pplx|ghp|github_pat|r8|nvapi|lsv2|pcsk)[-_][\w-]{16,}|\bAIza[\w-]{30,}"),
    # Who logs in at an address.
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    # Headers, and the query of an address.
    re.compile(r"(?<=\bbearer )[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(?<=[?&]key=)[^&\s'\"]+", re.IGNORECASE),
    re.compile(
        r"(?P<name>\b(?:x-)?(?:api|access|secret|auth|subscription)[-_]?(?:key|token)['\"]?\s*[=:]\s*['\"]?)"
        r"[\w.~+/=-]{8,}",
        re.IGNORECASE,
    ),
)


def message_of(error: BaseException | str | None, most: int | None = None) -> str:
    """What an error says: on one line, as a file can hold it, and without secrets.

    Args:
        error: The error, or what it says.
        most: The most characters.
    """
    return without_keys(" ".join(storable(str(error)).split()))[:most]


def named_message(error: BaseException | None, most: int | None = None) -> str:
    """The class of an error and what it says, as `message_of` has it."""
    return f"{type(error).__name__}: {message_of(error, most)}"


def without_keys(text: str) -> str:
    """A text with a mark in place of keys and passwords, since clients put into their errors what they have sent.

    What the environment holds under the name of a key, token or password is one, and so is what looks like one.
    """
    for name, value in dict(os.environ).items():
        if len(value) >= _SHORTEST and value in text and _SECRET_NAME.fullmatch(name):
            text = text.replace(value, _MASK)
    for pattern in _KEYS:
        text = pattern.sub(lambda found: found.groupdict().get("name", "") + _MASK, text)
    return text
