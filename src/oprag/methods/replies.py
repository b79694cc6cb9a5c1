"""Reading what models write: confidences, questions, refusals."""

from __future__ import annotations

import re
from typing import NamedTuple

from oprag.errors import OptionError
from oprag.methods.completion import Completion

__all__ = ["Rated", "is_refusal", "may_be_refusal", "questions_of", "rated", "text_of"]

_NUMBER = r"(?P<sign>[-−]?)\s*(?P<number>\d+(?:[.,]\d+)?)\s*(?:(?P<percent>%|percent)|(?:/|out of)\s*(?P<of>\d+))?"
# A line that says it, or the end of the text where it stands behind the answer on one line.
_LINE = re.compile(r"^\W*(?:confidence|score)\b(?P<rest>.*)$", re.IGNORECASE | re.MULTILINE)
_INLINE = re.compile(rf"\b(?:confidence|score)\s*[:=]\s*(?P<rest>\W*{_NUMBER}\W*)\Z", re.IGNORECASE)
_VALUE = re.compile(_NUMBER, re.IGNORECASE)
_ANSWER = re.compile(r"\A\W*answer\s*:\s*", re.IGNORECASE)

_BULLET = re.compile(r"^\s*(?:[-*•–]+|\(?\d{1,3}[.):]|[Qq](?:uestion)?\s*\d*[.:])\s*")
_MARKS = "\"'“”‘’„«»*_`"
_LONGEST_QUESTION = 1_000  # characters; a longer line is no question

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
    found = [*_LINE.finditer(reply)][-1:] or [*_INLINE.finditer(reply)]
    if not found:
        return Rated(_unlabelled(reply), None)
    value = _VALUE.search(found[0]["rest"])
    # Words behind the line belong to nothing: the answer stands before it, or, with some models, behind it.
    text = reply[: found[0].start()].strip() or reply[found[0].end() :].strip()
    return Rated(_unlabelled(text), None if value is None else _on_scale(value))


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
    distinct = {line.casefold(): line for line in reversed(asked)}
    return tuple(reversed(distinct.values()))[:most]


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
    rest = reply.lstrip(f"{_MARKS}#>([ \t\n\r")
    if rest[: len(_LABEL)].casefold() == _LABEL:
        rest = rest[len(_LABEL) :].lstrip(f"{_MARKS}([ \t\n\r")
    start = rest[: len(_REFUSAL)].casefold()
    if len(start) < len(_REFUSAL):
        return _Reading(_REFUSAL.startswith(start) or _LABEL.startswith(start), refused=False)
    if start != _REFUSAL:
        return _Reading(possible=False, refused=False)
    behind = rest[len(_REFUSAL) :].lstrip(f"{_MARKS})] \t")
    refused = not behind or behind[0] in _ENDS
    return _Reading(refused, refused)
