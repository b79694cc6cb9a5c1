"""Reading what models write: texts, confidences, questions."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from oprag.errors import OptionError
from oprag.methods.model_calls import Completion

__all__ = ["MARKS", "Rated", "is_refusal", "may_be_refusal", "questions_of", "rated", "text_of", "without_thinking"]

# Every quantifier is bounded or possessive: a model that runs wild writes thousands of spaces, lines or digits.
_NUMBER = (
    r"(?<![\d.,])(?P<sign>[-−]?)(?P<number>\d{1,9}(?:\.\d{1,9}|,\d{1,2})?)(?![\d,]*\d)"
    r"(?!\s{0,9}(?:/|out of)\s{0,9}\d{10})\s{0,9}"
    r"(?:(?:%|percent)|(?:/|out of)\s{0,9}(?P<of>\d{1,9})(?!\d))?"
)
_WORDS_BEFORE = r"(?:(?:my|the|overall|with)\s{1,9}){0,3}"
_LINE = re.compile(
    rf"^[^\w\n]*+{_WORDS_BEFORE}confidence\b(?P<rest>\W{{0,9}}\n\W{{0,9}}\d.*|.*)$", re.IGNORECASE | re.MULTILINE
)
_INLINE = re.compile(rf"\b{_WORDS_BEFORE}confidence\s{{0,9}}[:=]?(?P<rest>.{{0,99}})\Z", re.IGNORECASE | re.DOTALL)
# LangChain's prompts ask for a score. Answers have the word too, so it counts on a last line with a number alone.
_SCORE = re.compile(r"^[^\w\n]*+score\s{0,9}[:=](?P<rest>[^\n]*+)\s*+\Z", re.IGNORECASE | re.MULTILINE)
_VALUE = re.compile(_NUMBER, re.IGNORECASE)
_ANSWER = re.compile(r"\A\W*+answer\W{0,9}:\W*+", re.IGNORECASE)

_BULLET = re.compile(
    r"^(?:[\s\-*•–_`\"“]++|\(?(?:\d{1,3}|[A-Za-z])\)|\d{1,3}[.:](?!\d)|[Qq](?:uestion)?\s{0,9}\d{0,3}[.:](?!\w))++"
)
_OPENING = " \t\r\n([{*_<-–—,;|"
MARKS = "\"'“”‘’„«»*_`"
_EMPHASIS = re.compile(r"(\*\*|__)(.{1,200}?)\1")
# A remark in brackets may follow.
_QUESTION = re.compile(r"[?？]\W{0,9}(?:\([^()]{0,200}\)\W{0,9})?\Z")
_LONGEST_QUESTION = 1_000  # characters; a longer line is no question

# Models that reason aloud put it before their answer.
_THINKING = re.compile(r"\A\s*+<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\A\s*+```\w*+\s*+(?P<inside>.*?)```\s*+\Z", re.DOTALL)


class Rated(NamedTuple):
    """An answer and the confidence behind it, from 0 to 100; None where there is none to be read."""

    text: str
    confidence: float | None


def text_of(completion: Completion, reader: str) -> str:
    """The text of a reply that is going to be read, without what a model thought aloud before it.

    Raises:
        OptionError: The model gives objects and no text.
    """
    if completion.parsed is not None:
        raise OptionError(
            f"{reader} reads the text that the model writes, and this model gives objects (structured output)",
            completion.parsed,
        )
    return without_thinking(completion.text)


def without_thinking(reply: str) -> str:
    """The reply without what a model thought aloud before it, or has been thinking so far."""
    return _THINKING.sub("", reply, count=1)


def rated(reply: str) -> Rated:
    """Take the confidence off a reply.

    "85", "85 %", "8.5/10" and "17 out of 20" can be read. A number outside of 0 to 100 is not one that was asked for,
    so it counts as unreadable.
    """
    if (said := _as_json(reply, dict)) is not None:
        said = {str(name).casefold(): value for name, value in said.items()}
        if {"answer", "confidence"} <= said.keys():
            value = _value(str(said["confidence"]))
            return Rated(str(said["answer"]).strip(), None if value is None else _on_scale(value))
    found = _said(reply)
    if found is None:
        return Rated(_unlabelled(reply), None)
    value = _value(found["rest"])
    # Words behind the line belong to nothing: the answer stands before it, or, with some models, behind it.
    text = reply[: found.start()].rstrip(_OPENING) or reply[found.end() :].strip()
    if not text and value is None and (not found["rest"].strip() or any(map(str.isalnum, found["rest"]))):
        # No confidence: an answer that begins with the word.
        return Rated(_unlabelled(reply), None)
    return Rated(_unlabelled(text), None if value is None else _on_scale(value))


def _said(reply: str) -> re.Match[str] | None:
    """Where the confidence is said: on the last line that begins with the word, or at the end of the text."""
    lines = [*_LINE.finditer(reply)]
    numbered = [line for line in lines if _value(line["rest"])]
    if lines:
        return (numbered or lines)[-1]
    for found in _INLINE.finditer(reply):
        value = _value(found["rest"])
        if value and not any(map(str.isalpha, found["rest"][: value.start()] + found["rest"][value.end() :])):
            return found
    found_score = _SCORE.search(reply)
    return found_score if found_score and _VALUE.fullmatch(found_score["rest"].strip(f"{MARKS}. \t")) else None


def _as_json(reply: str, kind: type[Any]) -> Any:
    """What a model wrote as JSON, though nobody asked it to; None where it is none, or of another kind."""
    fenced = _FENCED.match(reply)
    text = (fenced["inside"] if fenced else reply).strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def _value(rest: str) -> re.Match[str] | None:
    """The number, behind the colon if there is one: before it may stand a scale, as in "Confidence (0-100): 85"."""
    marks = [place for place in map(rest.find, ":=") if place >= 0]
    return _VALUE.search(rest, min(marks) + 1 if marks else 0)


def _on_scale(value: re.Match[str]) -> float | None:
    number = float(value["number"].replace(",", "."))
    if value["of"]:
        number = 100 * number / int(value["of"]) if int(value["of"]) else -1.0
    return None if value["sign"] or not 0 <= number <= 100 else number


def _unlabelled(text: str) -> str:
    return _ANSWER.sub("", text, count=1).strip()


def questions_of(reply: str, most: int) -> tuple[str, ...]:
    """The questions in a reply, a line each; without bullets, numbers, words around them, and repetitions.

    Args:
        reply: What the model wrote.
        most: How many questions were asked for; further ones are left out.
    """
    listed = _as_json(reply, list)
    written = reply.splitlines() if listed is None else [line for line in listed if isinstance(line, str)]
    # "**What** is it?" is set off inside.
    plain = [_BULLET.sub("", _EMPHASIS.sub(r"\2", line)) for line in written]
    lines = [line.strip().strip(MARKS).strip() for line in plain]
    lines = [line for line in lines if any(map(str.isalnum, line)) and len(line) <= _LONGEST_QUESTION]
    # "Here are four questions:" is none. Where no line has a question mark, a model may have left them all out.
    asked = [line for line in lines if _QUESTION.search(line)] or [line for line in lines if line[-1] not in ":："]
    distinct: dict[str, str] = {}
    for line in asked:
        distinct.setdefault(line.casefold(), line)
    return tuple(distinct.values())[:most]


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
