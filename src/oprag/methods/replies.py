"""Reading what models write: confidences, questions, refusals."""

from __future__ import annotations

import re
from typing import NamedTuple

from oprag.errors import OptionError
from oprag.methods.completion import Completion

__all__ = ["Rated", "is_refusal", "may_be_refusal", "questions_of", "rated", "text_of"]

# Every quantifier is bounded or possessive: a model that runs wild writes thousands of spaces, lines or digits.
_NUMBER = (
    r"(?<![\d.,])(?P<sign>[-−]?)(?P<number>\d{1,9}(?:\.\d{1,9}|,\d{1,2})?)(?![\d,]*\d)"
    r"(?!\s{0,9}(?:/|out of)\s{0,9}\d{10})\s{0,9}"
    r"(?:(?:%|percent)|(?:/|out of)\s{0,9}(?P<of>\d{1,9})(?!\d))?"
)
_LINE = re.compile(r"^[^\w\n]*+(?:confidence|score)\b(?P<rest>.*)$", re.IGNORECASE | re.MULTILINE)
_INLINE = re.compile(r"\b(?:confidence|score)\s{0,9}[:=](?P<rest>.{0,99})\Z", re.IGNORECASE | re.DOTALL)
_VALUE = re.compile(_NUMBER, re.IGNORECASE)
_ANSWER = re.compile(r"\A\W*+answer\W{0,9}:\W*+", re.IGNORECASE)

_BULLET = re.compile(
    r"^(?:[\s\-*•–_`\"“]++|\(?(?:\d{1,3}|[A-Za-z])\)|\d{1,3}[.:](?!\d)|[Qq](?:uestion)?\s{0,9}\d{0,3}[.:](?!\w))++"
)
_OPENING = " \t\r\n([{*_<-–—,;|"
_MARKS = "\"'“”‘’„«»*_`"
_LONGEST_QUESTION = 1_000  # characters; a longer line is no question

_SET_OFF = re.compile(r"\A[\W_]++")
_REFUSAL = "unanswerable"
_LABEL = "answer:"
_ENDS = ".!?\n\r…。"


class Rated(NamedTuple):
    """An answer and the confidence behind it, from 0 to 100; None where there is none to be read."""

    text: str
    confidence: float | None


def text_of(completion: Completion, reader: str) -> str:
    """The text of a reply that is going to be read.

    Raises:
        OptionError: The model gives objects and no text.
    """
    if completion.parsed is not None:
        raise OptionError(
            f"{reader} reads the text that the model writes, and this model gives objects (structured output)",
            completion.parsed,
        )
    return completion.text


def rated(reply: str) -> Rated:
    """Take the confidence off a reply.

    "85", "85 %", "8.5/10" and "17 out of 20" can be read. A number outside of 0 to 100 is not one that was asked for,
    so it counts as unreadable.
    """
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
    return None


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
    lines = [_BULLET.sub("", line).strip().strip(_MARKS).strip() for line in reply.splitlines()]
    lines = [line for line in lines if any(map(str.isalnum, line)) and len(line) <= _LONGEST_QUESTION]
    # "Here are four questions:" is none. Where no line has a question mark, a model may have left them all out.
    asked = [line for line in lines if line.endswith(("?", "？"))] or [line for line in lines if line[-1] not in ":："]
    distinct: dict[str, str] = {}
    for line in asked:
        distinct.setdefault(line.casefold(), line)
    return tuple(distinct.values())[:most]


def is_refusal(reply: str) -> bool:
    """Whether a reply says that the question cannot be answered from the text.

    It does when its first word is "unanswerable", however it is spelled, quoted or set off, and nothing follows that
    makes it part of a sentence.
    """
    return _read(reply).refused


def may_be_refusal(beginning: str) -> bool:
    """Whether a reply that begins like this may still become a refusal, or is one."""
    return _read(beginning).possible


class _Reading(NamedTuple):
    possible: bool
    refused: bool


def _read(reply: str) -> _Reading:
    rest = _SET_OFF.sub("", reply)
    if rest[: len(_LABEL)].casefold() == _LABEL:
        rest = _SET_OFF.sub("", rest[len(_LABEL) :])
    start = rest[: len(_REFUSAL)].casefold()
    if len(start) < len(_REFUSAL):
        return _Reading(_REFUSAL.startswith(start) or _LABEL.startswith(start), refused=False)
    if start != _REFUSAL:
        return _Reading(possible=False, refused=False)
    behind = rest[len(_REFUSAL) :]
    # A sentence that ends there, or nothing but marks so far.
    refused = not any(map(str.isalnum, behind)) or behind.lstrip(f"{_MARKS})] \t")[0] in _ENDS
    return _Reading(refused, refused)
