"""ROUGE-L, for answers of at least a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from oprag.compare.metrics.answers import check_texts
from oprag.errors import MissingExtraError, OptionError
from oprag.masking import describe

__all__ = ["rouge_l"]

_BLOCK = 8_192  # tokens


def rouge_l(prediction: str, answers: Sequence[str]) -> float:
    """F-measure of the longest common subsequence of a prediction and its best-matching gold answer.

    2 · P · R / (P + R), where P and R are the length of the subsequence divided by the tokens of the prediction and of
    the answer (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"). Tokens and scores match the
    `rouge-score` package without a stemmer, as used by SCROLLS for QMSum and by LongBench for summaries. The QMSum
    paper used ROUGE-1.5.5 with stemming.

    The package's tokenizer only recognizes the letters a to z and digits, so "café" becomes "caf" and texts in other
    scripts have no tokens: use a custom metric for other languages.

    Args:
        prediction: Answer of the model; without tokens it scores 0.
        answers: Gold answers, any of which is right; the best score counts, and answers without tokens score 0.

    Returns:
        A value from 0 to 1.

    Raises:
        OptionError: `prediction` is not a string, `answers` is not a sequence of at least one string, or the tokenizer
            finds no tokens in answers that contain letters.
        MissingExtraError: `rouge-score` is not installed.

    Example:
        >>> rouge_l("the bear ate the honey", ["the bear slept", "honey was eaten by the bear"])
        0.5
    """
    check_texts(prediction, answers)
    tokenize = _tokenizer()
    _refuse_unreadable(answers)
    predicted = tokenize(prediction)
    return max(_f_measure(tokenize(answer), predicted) for answer in answers)


def _f_measure(answer: Sequence[str], prediction: Sequence[str]) -> float:
    common = _longest_common(answer, prediction)
    if not common:
        return 0.0
    # Same order of operations as the package, so that results are bit-identical.
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    The package fills a table of all pairs in Python, which takes 4 seconds for 4,000 tokens each. Here an integer
    represents a row of that table, with a 0 bit where the length increases (Hyyrö 2004, "Bit-parallel LCS-length
    computation revisited"). Columns are processed in blocks to limit memory; carries of additions pass to the next
    block.
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
def _tokenizer() -> Callable[[str], Sequence[str]]:
    try:
        package = import_module("rouge_score.tokenizers")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error
    tokenize: Callable[[str], Sequence[str]] = package.DefaultTokenizer(use_stemmer=False).tokenize
    return tokenize


def _refuse_unreadable(answers: Sequence[str]) -> None:
    """Reject answers that score 0 for any prediction."""
    if any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower()):
        return
    for answer in answers:
        if any(map(str.isalnum, answer)):
            raise OptionError(
                f"the ROUGE-L tokenizer only recognizes a to z and 0 to 9, and finds no tokens in the answer "
                f"{describe(answer)}; use a custom metric for this language",
                answer,
            )
