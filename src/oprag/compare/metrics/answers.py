"""Metrics of the text of an answer, except ROUGE and multiple choice."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from typing import Any

from oprag.embedding.cosine import cosine
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_count, check_text

__all__ = [
    "answer_cosine",
    "check_answers",
    "check_texts",
    "exact_match",
    "long_context_share",
    "normalized_words",
    "paper_token_usage",
    "token_f1",
]


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """F1 of the words of a prediction and its best gold answer.

    2 · precision · recall / (precision + recall) over the words of both, each counted as often as it occurs, after
    `normalized_words`: `qa_f1_score` of ∞Bench (`src/compute_scores.py`), which is SQuAD's.

    If normalization leaves nothing of the prediction or of an answer, their F1 is 0, even if it leaves nothing of both,
    as in ∞Bench and SQuAD 1.1 (SQuAD 2.0 gives 1 there). Words are split at white space, so the function does not suit
    languages without it.

    Args:
        prediction: The answer of the model; may be empty.
        answers: The gold answers, each of them right; the best one counts.

    Returns:
        From 0 to 1.

    Raises:
        OptionError: The prediction is not a string, or the answers are not a sequence of at least one string.

    Example:
        >>> token_f1("the old brown bear", ["a bear", "brown bears"])
        0.5
    """
    check_texts(prediction, answers)
    words = normalized_words(prediction)
    return max(_f1(words, normalized_words(answer)) for answer in answers)


def _f1(words: Sequence[str], gold: Sequence[str]) -> float:
    common = (Counter(words) & Counter(gold)).total()
    if not common:
        return 0.0
    # In these steps, as the reference has them, so that not even the last bit differs.
    precision, recall = common / len(words), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if a gold answer has the same words in the same order as the prediction, else 0.

    As in SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250), after `normalized_words`, with one difference: a prediction
    of which normalization leaves nothing ("", "The.") scores 0 whatever the answers are, as in `token_f1`.
    So an exact match is never above the F1 of the same answer, and an empty reply is never right.

    Args:
        prediction: The answer of the model; may be empty.
        answers: The gold answers, each of them right; one that matches is enough.

    Returns:
        0 or 1.

    Raises:
        OptionError: The prediction is not a string, or the answers are not a sequence of at least one string.

    Example:
        >>> exact_match("The Bear.", ["wolf", "bear"])
        1.0
    """
    check_texts(prediction, answers)
    words = normalized_words(prediction)
    return float(bool(words) and any(words == normalized_words(answer) for answer in answers))


_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normalized_words(text: str) -> list[str]:
    """The words that are left without capitals, punctuation and articles.

    The rule of SQuAD's evaluation (Rajpurkar et al. 2016, arXiv 1606.05250), which ∞Bench uses unchanged: lower case,
    then ASCII punctuation deleted, then the English articles, then split at white space. So "well-known" is the one
    word "wellknown", "A.N." is the article "an" and goes, while curly quotes and dashes stay.

    Example:
        >>> normalized_words("The  cat's A-team, an old one.")
        ['cats', 'ateam', 'old', 'one']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def paper_token_usage(response: str) -> float:
    """Tokens of a response by the formula of the paper: T = LR × 4 / 3, where LR is the length of the response.

    From Şakar and Emekci 2024 (doi 10.1017/nlp.2024.53), for comparison with its figures. **The paper does not say in
    what LR is measured.** Here it is in words, since 4 tokens for 3 words is the usual rule of thumb for English text.
    The formula sees neither the prompt nor the calls before the last one: for what was spent, use the counted tokens.

    Args:
        response: The answer of the model.

    Returns:
        Tokens, from 0; not a whole number in general.

    Raises:
        OptionError: The response is not a string.

    Example:
        >>> paper_token_usage("Because the bear ate honey.")
        6.666666666666667
    """
    check_text("response", response)
    return len(response.split()) * 4 / 3


def long_context_share(tokens_read: int, tokens_of_sources: int) -> float | None:
    """Tokens read, as a share of the tokens of the whole sources.

    The cost that Self-Route reports (Li et al. 2024, arXiv 2407.16833). It is above 1 where a question was routed on:
    the retrieved chunks were read, and then the whole sources. Over many questions the mean of the shares gives short
    documents the weight of long ones; the sum of what was read over the sum of the sources gives each token the same.

    Args:
        tokens_read: Tokens that the model read for one question, over all its calls.
        tokens_of_sources: Tokens of the same question with the whole sources. Both counted by the same tokenizer, and
            both with or both without the prompt around the context.

    Returns:
        From 0; None where the sources have no tokens.

    Raises:
        OptionError: A count is not a whole number from 0.

    Example:
        >>> long_context_share(2_000, 125_000)
        0.016
    """
    check_count("tokens_read", tokens_read, optional=False, least=0)
    check_count("tokens_of_sources", tokens_of_sources, optional=False, least=0)
    return tokens_read / tokens_of_sources if tokens_of_sources else None


def answer_cosine(prediction_vector: Iterable[float], answer_vectors: Iterable[Iterable[float]]) -> float:
    """Cosine similarity of a prediction and its nearest gold answer.

    The score of Şakar and Emekci (doi 10.1017/nlp.2024.53). It means something only where one embedder made all the
    vectors of a comparison. An empty text has no meaningful vector: the caller decides what it scores.

    Args:
        prediction_vector: The vector of the answer of the model, of shape (dimension,).
        answer_vectors: The vectors of the gold answers, of shape (answers, dimension); the best one counts.

    Returns:
        From -1 to 1; 0 where one of the two vectors is all zeros.

    Raises:
        OptionError: No answer vector is given.
        EmbeddingError: The dimensions differ, or a value is not a finite number.

    Example:
        >>> answer_cosine([1, 0], [[0, 2], [3, 4]])
        0.6
    """
    prediction: Any = prediction_vector if isinstance(prediction_vector, Sized) else list(prediction_vector)
    cosines = [cosine(prediction, answer) for answer in answer_vectors]
    if not cosines:
        raise OptionError("answer_vectors must hold at least one vector, got none", answer_vectors)
    return max(cosines)


def check_texts(prediction: Any, answers: Any) -> None:
    """Refuse a prediction that is not a string, and gold answers as `check_answers` does.

    Raises:
        OptionError: They cannot be compared.
    """
    check_text("prediction", prediction)
    check_answers("answers", answers)


def check_answers(name: str, answers: Any) -> None:
    """Refuse anything but a sequence of at least one string.

    A question without gold answers has no score: 0 would be averaged with the scores of those that have some.

    Raises:
        OptionError: It is a single string, empty, not a sequence, or contains something else.
    """
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise OptionError(f"{name} must be a list or tuple of strings, got {describe(answers)}", answers)
    if not answers:
        raise OptionError(f"{name} must hold at least one string, got none; leave out a question without any", answers)
    for answer in answers:
        check_text(f"each of {name}", answer)
