"""Parse replies of models: answers with a confidence, lists of questions, and refusals.

Models do not always follow the requested format. All patterns take linear time, with bounded or possessive quantifiers,
since a degenerate reply can contain thousands of spaces, lines or digits.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from oprag.errors import OptionError
from oprag.methods.model_calls import Completion

__all__ = ["RatedAnswer", "is_refusal", "may_be_refusal", "questions_in", "rated_answer", "reply_text"]

_QUOTES = "\"'“”‘’„«»*_`"
"""Quotation marks and Markdown emphasis."""

_THINKING = re.compile(r"\A\s*+<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"\A\s*+```\w*+\s*+(?P<inside>.*?)```\s*+\Z", re.DOTALL)


def reply_text(completion: Completion, reader: str) -> str:
    """The text of a reply, without the reasoning before it."""
    if completion.parsed is not None:
        raise OptionError(
            f"{reader} parses the model's text, but this model returns objects (structured output)",
            completion.parsed,
        )
    return _without_thinking(completion.text)


def _without_thinking(reply: str) -> str:
    return _THINKING.sub("", reply, count=1)


def _json_in(reply: str, kind: type[Any]) -> Any:
    """Parse a reply as JSON, which some models write unprompted; None if it is invalid or of another type."""
    fenced = _FENCED.match(reply)
    text = (fenced["inside"] if fenced else reply).strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


class RatedAnswer(NamedTuple):
    """An answer and its confidence from 0 to 100; None if no confidence could be parsed."""

    text: str
    confidence: float | None


# Matches "85", "85.5", "85,5", "85 percent", "8.5/10" and "17 out of 20", but not part of a longer number like 1,000.
_NUMBER = (
    r"(?<![\d.,])(?P<number>[-−]?\d++(?:\.\d++|,\d{1,2})?)(?!,?\d)"
    r"\s{0,9}(?:percent|(?:/|out of)\s{0,9}(?P<scale>\d++))?"
)
# The number after the colon, if any: there may be a scale before it, as in "Confidence (0-100): 85".
_VALUE = re.compile(rf"(?:[^:=]*+[:=])?+.*?{_NUMBER}", re.IGNORECASE | re.DOTALL)
_CONFIDENCE = r"(?:(?:my|the|overall|with)\s{1,9}){0,3}confidence"
_CONFIDENCE_LINE = re.compile(
    rf"^[^\w\n]*+{_CONFIDENCE}\b(?P<rest>\W{{0,9}}\n\W{{0,9}}\d.*|.*)$", re.IGNORECASE | re.MULTILINE
)
# Within a line, the number must not be followed by words; after "Score:", the format of LangChain's prompts, there must
# be only a number.
_NUMBER_AT_END = re.compile(
    rf"(?:\b{_CONFIDENCE}|(?P<score>^[^\w\n]*+score\s{{0,9}}[:=]))"
    rf"(?P<rest>[\W_]*+{_NUMBER}(?(score)[\W_]*+|[\W\d_]*+))\Z",
    re.IGNORECASE | re.MULTILINE,
)
_OPENING = " \t\r\n([{*_<-–—,;|"
_ANSWER_LABEL = re.compile(r"\A\W*+answer\W{0,9}:\W*+", re.IGNORECASE)


def rated_answer(reply: str) -> RatedAnswer:
    """Separate an answer from its confidence, which may be on a separate line, at the end, or in JSON.

    A number outside 0 to 100 is ignored.
    """
    if (parsed := _json_in(reply, dict)) is not None:
        parsed = {str(name).casefold(): value for name, value in parsed.items()}
        if {"answer", "confidence"} <= parsed.keys():
            return RatedAnswer(str(parsed["answer"]).strip(), _confidence(_VALUE.match(str(parsed["confidence"]))))
    # The last line that starts with "confidence", preferably one with a number.
    lines = sorted(_CONFIDENCE_LINE.finditer(reply), key=lambda line: _VALUE.match(line["rest"]) is not None)
    found = lines[-1] if lines else _NUMBER_AT_END.search(reply)
    if found is None:
        return RatedAnswer(_unlabelled(reply), None)
    rest = found["rest"]
    value = _VALUE.match(rest)
    # Some models answer after the confidence. If the answer is before it, text after it is ignored.
    text = reply[: found.start()].rstrip(_OPENING) or reply[found.end() :].strip()
    if not text and value is None and (not rest.strip() or any(map(str.isalnum, rest))):
        return RatedAnswer(_unlabelled(reply), None)  # an answer that starts with the word "confidence"
    return RatedAnswer(_unlabelled(text), _confidence(value))


def _confidence(value: re.Match[str] | None) -> float | None:
    if value is None:
        return None
    confidence = float(value["number"].replace(",", ".").replace("−", "-"))
    if value["scale"]:
        scale = float(value["scale"])
        confidence = 100 * confidence / scale if scale else -1.0
    return confidence if 0 <= confidence <= 100 else None


def _unlabelled(text: str) -> str:
    return _ANSWER_LABEL.sub("", text, count=1).strip()


_BULLET = re.compile(
    r"^(?:[\s\-*•–_`\"“]++|\(?(?:\d{1,3}|[A-Za-z])\)|\d{1,3}[.:](?!\d)|[Qq](?:uestion)?\s{0,9}\d{0,3}[.:](?!\w))++"
)
_EMPHASIS = re.compile(r"(\*\*|__)(.{1,200}?)\1")
# A question mark at the end, possibly followed by a remark in parentheses.
_QUESTION = re.compile(r"[?？]\W{0,9}(?:\([^()]{0,200}\)\W{0,9})?\Z")
_MAX_QUESTION_LENGTH = 1_000  # characters; a longer line is not a question


def questions_in(reply: str, limit: int) -> tuple[str, ...]:
    """The questions in a reply, one per line, without bullets, numbers, other lines and duplicates."""
    listed = _json_in(reply, list)
    written = reply.splitlines() if listed is None else [line for line in listed if isinstance(line, str)]
    lines = [_BULLET.sub("", _EMPHASIS.sub(r"\2", line)).strip().strip(_QUOTES).strip() for line in written]
    lines = [line for line in lines if any(map(str.isalnum, line)) and len(line) <= _MAX_QUESTION_LENGTH]
    # Skip lines such as "Here are four questions:", even if the model omitted all question marks.
    questions = [line for line in lines if _QUESTION.search(line)] or [line for line in lines if line[-1] not in ":："]
    distinct: dict[str, str] = {}
    for line in questions:
        distinct.setdefault(line.casefold(), line)
    return tuple(distinct.values())[:limit]


_REFUSAL = "unanswerable"
_LEADS = ("", "answer ", "final answer ", "the answer ", "the answer is ", "the question is ", "this question is ")
_REASONS = (
    *("based on", "from the", "given the", "in the", "by the", "with the", "using the", "as the"),
    *("because", "since"),
)
# Words, each followed by a space.
_REFUSALS = tuple(f"{lead}{_REFUSAL} " for lead in _LEADS)
_REFUSALS_WITH_REASON = tuple(f"{refusal}{reason} " for refusal in _REFUSALS for reason in _REASONS)
_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(rf"[{_QUOTES})\] \t]*+[.!?\n\r…。]")
# A remark may follow the single word; within a sentence, it would be part of the sentence.
_REMARK = re.compile(rf"[{_QUOTES})\] \t]*+[:;,(–—]|[{_QUOTES}]*+ -")
# Complete, or cut off at the end of the text so far.
_CITATION = re.compile(r"\[[\d,; ]*+(?:\]|\Z)")
_UNFINISHED_TAG = re.compile(r"\A\s*+<[A-Za-z]{0,8}\Z")
_FAR = 200  # characters; a refusal starts earlier


def is_refusal(reply: str) -> bool:
    """Whether a reply means that the question cannot be answered from the text.

    It is a refusal if it starts with "unanswerable" or a phrase such as "the answer is unanswerable", regardless of
    case, quotes and punctuation, unless the word is part of a longer statement.
    """
    text = _folded(reply)
    words = _first_words(text)
    if not words.startswith(_REFUSALS):
        return False
    if words in _REFUSALS or words.startswith(_REFUSALS_WITH_REASON):
        return True
    end = text.index(_REFUSAL) + len(_REFUSAL)
    return bool(_SENTENCE_END.match(text, end) or (words.startswith(_REFUSAL) and _REMARK.match(text, end)))


def may_be_refusal(beginning: str) -> bool:
    """Whether a reply with this beginning is a refusal, or may become one."""
    text = _folded(beginning)
    words = _first_words(text).rstrip()
    if not words:
        return len(text) <= _FAR
    if _UNFINISHED_TAG.match(beginning):
        return True
    return is_refusal(beginning) or any(refusal.startswith(words) for refusal in _REFUSALS_WITH_REASON)


def _folded(reply: str) -> str:
    """A reply, case-folded, without reasoning and citations."""
    return _CITATION.sub("", _without_thinking(reply)).casefold()


def _first_words(text: str) -> str:
    """The words at the beginning of a text, each followed by one space, without punctuation."""
    return "".join([f"{word} " for word in _WORD.findall(text[:_FAR])])
