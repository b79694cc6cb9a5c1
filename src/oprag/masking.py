"""Errors without secrets: clients of models repeat in their errors what they have sent."""

from __future__ import annotations

import os
import re

__all__ = ["masked_error", "without_keys"]

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


def masked_error(error: BaseException | None) -> str:
    """The class of an error and its message, with keys and passwords masked."""
    return f"{type(error).__name__}: {without_keys(str(error))}"


def without_keys(text: str) -> str:
    """A text with keys and passwords masked: those in the environment, by their names, and what looks like one."""
    # The longest first, as one may be the beginning of another.
    for name, value in sorted(os.environ.items(), key=lambda one: -len(one[1])):
        if len(value) >= _SHORTEST and value in text and _SECRET_NAME.fullmatch(name):
            text = text.replace(value, _MASK)
    for pattern in _KEYS:
        text = pattern.sub(lambda found: found.groupdict().get("name", "") + _MASK, text)
    return text
