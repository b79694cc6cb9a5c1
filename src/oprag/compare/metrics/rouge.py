"""ROUGE-L, for answers of a sentence and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from oprag.checks import check_bool
from oprag.compare.metrics.given import check_texts
from oprag.errors import MissingExtraError, OptionError, TokenizerError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["rouge_l"]


def rouge_l(
    prediction: str,
    answers: Sequence[str],
    *,
    stemmer: bool = False,
    tokenizer: Callable[[str], Sequence[str]] | None = None,
) -> float:
    """The F-measure of the longest common subsequence of a prediction and of the gold answer that it is nearest to.

    2 · P · R / (P + R) with P and R the length of the subsequence over the tokens of the prediction and of the answer
    (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries"), computed by the `rouge-score` package. Without
    a stemmer by default, as SCROLLS scores QMSum and LongBench its summaries; ROUGE-1.5.5 as the QMSum paper ran it
    stems.

    The package's tokenizer reads the letters a to z and digits alone, so "café" is "caf" and nothing is left of a text
    in another script: give a `tokenizer` for other languages (`list` for one that writes no spaces).

    Args:
        prediction: What the model answered; without tokens it scores 0.
        answers: The gold answers, each of them right; the best one counts, one without tokens as 0.
        stemmer: Whether the default tokenizer reduces words of more than three letters to their stems (Porter).
        tokenizer: Gives the tokens of a text, in place of the default one.

    Returns:
        From 0 to 1.

    Raises:
        OptionError: The prediction is no string, the answers are no sequence of at least one string, `stemmer` is set
            together with a tokenizer, or the default tokenizer leaves nothing of answers that have letters.
        TokenizerError: The tokenizer gives something else than strings.
        MissingExtraError: `rouge-score` is not installed.

    Example:
        >>> rouge_l("the bear ate the honey", ["the bear slept", "honey was eaten by the bear"])
        0.5
    """
    check_texts(prediction, answers)
    check_bool("stemmer", stemmer)
    if tokenizer is None:
        scorer = _default_scorer(stemmer)
        _refuse_unreadable(answers)
    elif stemmer:
        raise OptionError("stemmer belongs to the default tokenizer; give one of the two", stemmer)
    else:
        scorer = _scorer(_Tokenizer(tokenizer))
    return max(float(scorer.score(answer, prediction)["rougeL"].fmeasure) for answer in answers)


def _rouge_score(module: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(f"rouge_score.{module}")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error


@cache
def _default_scorer(stemmer: bool) -> Any:  # noqa: FBT001
    return _scorer(_rouge_score("tokenizers").DefaultTokenizer(stemmer))


def _scorer(tokenizer: Any) -> Any:
    return _rouge_score("rouge_scorer").RougeScorer(["rougeL"], tokenizer=tokenizer)


class _Tokenizer:
    """A function in the shape of a tokenizer of the package."""

    def __init__(self, tokenizer: Callable[[str], Any]) -> None:
        if not callable(tokenizer):
            raise OptionError(
                f"tokenizer must be a function that gives the tokens of a text, got {tokenizer!r}", tokenizer
            )
        self._tokenizer = tokenizer

    def tokenize(self, text: str) -> list[str]:
        tokens = self._tokenizer(text)
        if not isinstance(tokens, Sequence) or not all(isinstance(token, str) for token in tokens):
            raise TokenizerError(f"the tokenizer must give a list of strings, got {tokens!r}", tokens)
        return list(tokens)


def _refuse_unreadable(answers: Sequence[str]) -> None:
    """Refuse answers that can only score 0, whatever the prediction is."""
    if any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower()):
        return
    for answer in answers:
        if any(map(str.isalnum, answer)):
            raise OptionError(
                f"the default tokenizer reads a to z and 0 to 9 alone and finds nothing in the answer {answer!r}; "
                "give a tokenizer for its language (list takes each character as a token)",
                answer,
            )
