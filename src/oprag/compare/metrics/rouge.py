"""ROUGE-L, for answers of a sentence and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from oprag.compare.metrics.answers import check_texts
from oprag.errors import MissingExtraError, OptionError, TokenizerError
from oprag.masking import describe
from oprag.options import check_bool

__all__ = ["rouge_l"]

_BLOCK = 8_192  # tokens


def rouge_l(
    prediction: str,
    answers: Sequence[str],
    *,
    stemmer: bool = False,
    tokenizer: Callable[[str], Sequence[str]] | None = None,
) -> float:
    """The F-measure of the longest common subsequence of a prediction and of the gold answer that it is nearest to.

    2 · P · R / (P + R) with P and R the length of the subsequence over the tokens of the prediction and of the answer
    (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"), with the tokens and the scores of the
    `rouge-score` package. Without a stemmer by default, as SCROLLS scores QMSum and LongBench its summaries;
    ROUGE-1.5.5 as the QMSum paper ran it stems.

    The package's tokenizer reads the letters a to z and digits alone, so "café" is "caf" and nothing is left of a text
    in another script: give a `tokenizer` for other languages (`list` for one that writes no spaces).

    Args:
        prediction: The answer of the model; without tokens it scores 0.
        answers: The gold answers, each of them right; the best one counts, one without tokens as 0.
        stemmer: Whether the default tokenizer reduces words of more than three letters to their stems (Porter).
        tokenizer: Gives the tokens of a text, in place of the default one.

    Returns:
        From 0 to 1.

    Raises:
        OptionError: The prediction is not a string, the answers are not a sequence of at least one string, `stemmer` is
            set together with a tokenizer, or the default tokenizer leaves nothing of answers that have letters.
        TokenizerError: The tokenizer gives something else than strings.
        MissingExtraError: `rouge-score` is not installed.

    Example:
        >>> rouge_l("the bear ate the honey", ["the bear slept", "honey was eaten by the bear"])
        0.5
    """
    check_texts(prediction, answers)
    check_bool("stemmer", stemmer)
    if tokenizer is None:
        tokenize = _default_tokenizer(stemmer)
        _refuse_unreadable(answers)
    elif stemmer:
        raise OptionError("stemmer belongs to the default tokenizer; give one of the two", stemmer)
    else:
        tokenize = _checked(tokenizer)
    predicted = tokenize(prediction)
    return max(_f_measure(tokenize(answer), predicted) for answer in answers)


def _f_measure(answer: Sequence[str], prediction: Sequence[str]) -> float:
    common = _longest_common(answer, prediction)
    if not common:
        return 0.0
    # In the package's order of operations, so that no digit differs.
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    The package fills a table of all pairs in Python, 4 seconds for 4,000 tokens each. Here an integer is a row of that
    table, with a 0 bit where the length grows (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). Blocks of
    columns bound the memory; the carries of additions go from each block to the next.
    """
    short, long = sorted((first, second), key=len)
    carries = bytearray(len(long))
    length = 0
    for start in range(0, len(short), _BLOCK):
        block = short[start : start + _BLOCK]
        places: dict[str, int] = {}
        for place, token in enumerate(block):
            places[token] = places.get(token, 0) | 1 << place
        row = full = (1 << len(block)) - 1
        for index, token in enumerate(long):
            match = row & places.get(token, 0)
            if match or carries[index]:
                total = row + match + carries[index]
                carries[index] = total > full
                row = total & full | row - match
        length += len(block) - row.bit_count()
    return length


@cache
def _default_tokenizer(stemmer: bool) -> Callable[[str], Sequence[str]]:  # noqa: FBT001
    try:
        package = import_module("rouge_score.tokenizers")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error
    tokenize: Callable[[str], Sequence[str]] = package.DefaultTokenizer(stemmer).tokenize
    return tokenize


def _checked(tokenizer: Callable[[str], Any]) -> Callable[[str], Sequence[str]]:
    if not callable(tokenizer):
        raise OptionError(
            f"tokenizer must be a function that gives the tokens of a text, got {describe(tokenizer)}", tokenizer
        )

    def tokenize(text: str) -> Sequence[str]:
        tokens = tokenizer(text)
        if not isinstance(tokens, Sequence) or not all(isinstance(token, str) for token in tokens):
            raise TokenizerError(f"the tokenizer must give a list of strings, got {describe(tokens)}", tokens)
        return list(tokens)

    return tokenize


def _refuse_unreadable(answers: Sequence[str]) -> None:
    """Refuse answers that can only score 0, whatever the prediction is."""
    if any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower()):
        return
    for answer in answers:
        if any(map(str.isalnum, answer)):
            raise OptionError(
                f"the default tokenizer reads a to z and 0 to 9 alone and finds nothing in the answer "
                f"{describe(answer)}; give a tokenizer for its language (list takes each character as a token)",
                answer,
            )
