"""ROUGE-L, for answers of a sentence and more."""

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
    """F-measure of the longest common subsequence of a prediction and its best gold answer.

    2 · P · R / (P + R) with P and R the length of the subsequence over the tokens of the prediction and of the answer
    (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"), with the tokens and the scores of the
    `rouge-score` package. Without a stemmer, as SCROLLS scores QMSum and LongBench its summaries; ROUGE-1.5.5 as the
    QMSum paper ran it stems.

    The package's tokenizer reads the letters a to z and digits alone, so "café" is "caf" and nothing is left of a text
    in another script: other languages need a metric of your own.

    Args:
        prediction: The answer of the model; without tokens it scores 0.
        answers: The gold answers, each of them right; the best one counts, one without tokens as 0.

    Returns:
        From 0 to 1.

    Raises:
        OptionError: The prediction is not a string, the answers are not a sequence of at least one string, or the
            tokenizer leaves nothing of answers that have letters.
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
def _tokenizer() -> Callable[[str], Sequence[str]]:
    try:
        package = import_module("rouge_score.tokenizers")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error
    tokenize: Callable[[str], Sequence[str]] = package.DefaultTokenizer(use_stemmer=False).tokenize
    return tokenize


def _refuse_unreadable(answers: Sequence[str]) -> None:
    """Refuse answers that can only score 0, whatever the prediction is."""
    if any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower()):
        return
    for answer in answers:
        if any(map(str.isalnum, answer)):
            raise OptionError(
                f"the tokenizer of ROUGE-L reads a to z and 0 to 9 alone and finds nothing in the answer "
                f"{describe(answer)}; score answers in its language by a metric of your own",
                answer,
            )
