"""Parse replies of models: answers with a confidence, lists of questions, and refusals.

Models do not always follow the requested format. All patterns take linear time, with bounded or possessive quantifiers,
since a degenerate reply can contain thousands of spaces, lines or digits.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from oprag.errors import OptionError
from oprag.methods.answer import Completion

__all__ = [
    "RatedAnswer",
    "is_refusal",
    "may_be_refusal",
    "questions_in",
    "rated_answer",
    "reply_text",
    "without_reasoning",
]

_QUOTES = "\"'“”‘’„«»*_`"
"""Quotation marks and Markdown emphasis."""

_THINKING = re.compile(r"\A\s*+<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_FENCED = re.compile(r"\A\s*+```\w*+\s*+(?P<inside>.*?)```\s*+\Z", re.DOTALL)


def reply_text(completion: Completion, reader: str) -> str:
    """The text of a reply, without the reasoning before it."""
    if completion.parsed is not None:
        raise OptionError(
            f"{reader} parses the model's text, but this model returns objects (structured output)",
            completion.parsed,
        )
    return _THINKING.sub("", completion.text, count=1)


def without_reasoning(reply: str) -> str:
    """A reply without the reasoning before it, which some servers leave in the text, between <think> and </think>.

    The opening tag may be missing, since it is the end of some models' prompts.
    """
    text = _THINKING.sub("", reply, count=1)
    end = _THOUGHT.search(text) if text == reply else None
    return text if end is None or "<think" in text[: end.start()].casefold() else text[end.end() :]


def _json_in(reply: str, kind: type[Any]) -> Any:
    """Parse a reply as JSON, which some models write unprompted; None if it is invalid or of another type."""
    fenced = _FENCED.match(reply)
    text = (fenced["inside"] if fenced else reply).strip()
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
    r"[\s*_]{0,9}(?:(?P<percent>percent|[%％])|(?:/|(?:out\s{1,9})?of\b)\s{0,9}(?P<scale>\d++))?"
)
# The number after the colon, if any.
_VALUE = re.compile(rf"(?:[^:：=]*+[:：=])?+.*?{_NUMBER}", re.IGNORECASE | re.DOTALL)
# The scale of a number, such as (1-10) in "Score (1-10): 9".
_RANGE = re.compile(
    r"(?:\A\W{0,9}(?:(?:score|level|rating)\W{1,9})?|\bscale\s{1,9})(?:(?:of|from|between)\s{1,9})?"
    r"[01](?:\.0)?\s{0,9}(?:[-–]|to|and)\s{0,9}(?P<end>\d++)(?:\.0)?",
    re.IGNORECASE,
)
_ADJECTIVES = r"(?:(?:my|the|overall|with|helpful|(?<!the\s)final)\s{1,9}){0,3}"
_LEVEL = r"(?:very\s{1,9})?(?:high|medium|moderate|low)"
_ANSWER = r"(?:(?:my|the|final|helpful)\s{1,9})?answer[\s*_]{0,9}[:：]"
_LINE_START = r"^[^\w\n]*+(?:\d[.)][^\w\n]{1,9})?+[*_]{0,3}"
# To the end of the line, or to an answer on the same line.
_REST = rf"(?:(?!\b{_ANSWER}).)*+"
# A line may say anything about the confidence. Elsewhere, the label is followed by the number. "Score" is an ordinary
# word, too: it starts a line, follows punctuation or is capitalized, and its number is not the result of a game (3-2).
_RATING = re.compile(
    rf"""
    {_LINE_START} {_ADJECTIVES} confidence\b
    (?P<line> (?=[^\n:：=]*+[:：=] | [^\n\d]*+\d) (?:\W{{0,9}}\n\W{{0,9}}\d)? {_REST})
    |
    (?: {_LINE_START}
      | (?<=[^\w\s])\s?[*_]{{0,3}}
      | (?<=\s)(?=(?-i:[A-Z]))
      | \b(?={_ADJECTIVES}confidence[\s*_]{{0,9}}[:：=]) )
    {_ADJECTIVES} (?:confidence | (?P<score>score))
    (?P<rest>
      (?:\s(?:score|level|rating)\b)? (?:\s?[(\[][^()\[\]\n]{{0,40}}[)\]])? [\s*_]{{0,9}}
      (?: [:：=]?(?:_|[^\w.!?;]){{0,9}} (?:(?:{_LEVEL}|about|around)[^\w.!?;]{{1,9}})?
          [-−]?\d++(?:[.,]\d++)*+ (?(score)(?!\s{{0,9}}(?:[-–—:]|to)\s{{0,9}}\d)) {_REST}
        | [:：=][^\w\n]*+ (?:{_LEVEL}|n/?a|none|unknown)?+ [^\w\n]*+$ ))
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_OPENING = " \t\r\n([{<-–—,;|"
_ANSWER_LABEL = re.compile(
    rf"\A\W*+(?:question[\s*_]{{0,9}}[:：][^\n]*+\n\W*+)?(?:\d[.)]\W{{1,9}})?{_ANSWER}(?:\*\*|__)?\s*+", re.IGNORECASE
)


def rated_answer(reply: str) -> RatedAnswer:
    """Separate an answer from its confidence or score, on a line of its own, at the end, or in JSON."""
    if (parsed := _json_in(reply, dict)) is not None:
        parsed = {str(name).casefold(): value for name, value in parsed.items()}
        rating = parsed.get("confidence", parsed.get("score"))
        if "answer" in parsed and rating is not None:
            return RatedAnswer(str(parsed["answer"]).strip(), _confidence(str(rating)))
    ratings = [(_confidence(found["line"] or found["rest"]), found) for found in _RATING.finditer(reply)]
    if not ratings:
        return RatedAnswer(_unlabelled(reply), None)
    # The last one, preferably one that can be read, and a confidence rather than a score.
    confidence, found = max(reversed(ratings), key=lambda rating: (rating[0] is not None, rating[1]["score"] is None))
    # Some models answer after the confidence. If the answer is before it, text after it is ignored.
    text = reply[: found.start()].rstrip(_OPENING) or reply[found.end() :].strip()
    if not text and confidence is None and any(map(str.isalpha, found["line"] or found["rest"])):
        text = reply  # an answer that starts with the word "confidence"
    return RatedAnswer(_unlabelled(text), confidence)


def _confidence(rest: str) -> float | None:
    """The number in a rating, from 0 to 100; None if there is none."""
    stated = _RANGE.search(rest)
    value = _VALUE.match(_RANGE.sub("", rest, count=1))
    if value is None:
        return None
    confidence = float(value["number"].replace(",", ".").replace("−", "-"))
    if scale := value["scale"] or (stated and stated["end"]):
        confidence = 100 * confidence / float(scale) if float(scale) else -1.0
    elif confidence <= 1 and not value["number"].isdigit() and not value["percent"]:
        confidence *= 100  # 0.9: a scale from 0 to 100 has no tenths of a percent
    return confidence if 0 <= confidence <= 100 else None


def _unlabelled(text: str) -> str:
    text = _ANSWER_LABEL.sub("", text, count=1).strip()
    # In "**Answer: Paris**", the label starts the emphasis.
    return text.removesuffix("**") if text.count("**") == 1 else text


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
    return _CITATION.sub("", _THINKING.sub("", reply, count=1)).casefold()


def _first_words(text: str) -> str:
    """The words at the beginning of a text, each followed by one space, without punctuation."""
    return "".join([f"{word} " for word in _WORD.findall(text[:_FAR])])
