"""Finding out whether a reply says that the question cannot be answered."""

from __future__ import annotations

import re
from typing import NamedTuple

from oprag.methods.replies import MARKS, without_thinking

__all__ = ["is_refusal", "may_be_refusal"]

_REFUSAL = "unanswerable"
_REFUSALS = tuple(
    f"{lead} {_REFUSAL}".strip()
    for lead in ("", "answer", "final answer", "the answer", "the answer is", "the question is", "this question is")
)
_REASONS = (
    *("based on", "from the", "given the", "in the", "by the", "with the", "using the", "as the"),
    *("because", "since"),
)
_FAR = 200  # characters; a refusal comes sooner
_WORD = re.compile(r"[^\W_]+")
_PLACE = re.compile(_REFUSAL, re.IGNORECASE)
# Complete, or as far as it has been written.
_MARKERS = re.compile(r"\A(?:\s*+\[[\d,; ]*+(?:\]|\Z))++")
_BEGUN_TAG = re.compile(r"\A\s*+<[A-Za-z]{0,8}\Z")
_SENTENCE_ENDS = ".!?\n\r…。"
# Behind the single word a remark may follow; in a sentence it would be another part of that.
_REMARKS = ":;,(–—"


def is_refusal(reply: str) -> bool:
    """Whether a reply says that the question cannot be answered from the text.

    It does when it begins with "unanswerable", or with "the answer is unanswerable" and the like, however that is
    spelled, quoted or set off, and nothing follows that makes the word part of another sentence.
    """
    return _read(reply).refused


def may_be_refusal(beginning: str) -> bool:
    """Whether a reply that begins like this may still become a refusal, or is one."""
    return _read(beginning).possible


class _Reading(NamedTuple):
    possible: bool
    refused: bool


def _read(reply: str) -> _Reading:
    if _BEGUN_TAG.match(reply):
        return _Reading(possible=True, refused=False)
    rest = without_thinking(reply)
    words = _words(rest)
    if not words:
        return _Reading(len(rest) <= _FAR, refused=False)
    if not any(words == phrase or words.startswith(f"{phrase} ") for phrase in _REFUSALS):
        return _Reading(any(phrase.startswith(words) for phrase in _REFUSALS), refused=False)
    place = _PLACE.search(rest)
    behind = _MARKERS.sub("", rest[place.end() :] if place else "")
    goes_on = _words(behind)
    if not goes_on or _ends(behind, alone=words.startswith(_REFUSAL)):
        return _Reading(possible=True, refused=True)
    refused = any(goes_on == reason or goes_on.startswith(f"{reason} ") for reason in _REASONS)
    return _Reading(refused or any(reason.startswith(goes_on) for reason in _REASONS), refused)


def _ends(behind: str, *, alone: bool) -> bool:
    """Whether what stands behind the word begins with its end."""
    mark = behind.lstrip(f"{MARKS})] \t")[0]
    return mark in _SENTENCE_ENDS or (alone and (mark in _REMARKS or behind.lstrip(MARKS).startswith(" -")))


def _words(text: str) -> str:
    """The words at the beginning of a text, whatever stands between them."""
    return " ".join(_WORD.findall(text[:_FAR])).casefold()
