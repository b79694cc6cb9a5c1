"""Metrics of answer texts, except ROUGE and multiple choice."""

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
    """Word F1 of a prediction and its best-matching gold answer.

    2 · precision · recall / (precision + recall) over the words of both, counting repetitions, after
    `normalized_words`. This is `qa_f1_score` of ∞Bench (`src/compute_scores.py`), which is SQuAD's.

    If normalization leaves no words of the prediction or of an answer, their F1 is 0, even if both are empty, as in
    ∞Bench and SQuAD 1.1 (SQuAD 2.0 gives 1 if both are empty). Words are split at white space, so the metric does not
    suit languages that do not separate words.

    Args:
        prediction: Answer of the model; may be empty.
        answers: Gold answers, any of which is right; the best score counts.

    Returns:
        A value from 0 to 1.

    Raises:
        OptionError: `prediction` is not a string, or `answers` is not a sequence of at least one string.

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
    # Same order of operations as the reference, so that results are bit-identical.
    precision, recall = common / len(words), common / len(gold)
    return 2 * precision * recall / (precision + recall)


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if a gold answer has the same words in the same order as the prediction, else 0.

    As in SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250), after `normalized_words`, with one difference: a prediction
    without words after normalization ("", "The.") scores 0 whatever the answers are, as in `token_f1`. So the exact
    match never exceeds the F1 of the same answer, and an empty reply is never right.

    Args:
        prediction: Answer of the model; may be empty.
        answers: Gold answers, any of which is right; one match is enough.

    Returns:
        0 or 1.

    Raises:
        OptionError: `prediction` is not a string, or `answers` is not a sequence of at least one string.

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
    """Split text into lower-case words without punctuation and articles.

    This is the rule of SQuAD's evaluation (Rajpurkar et al. 2016, arXiv 1606.05250), which ∞Bench uses unchanged:
    convert to lower case, delete ASCII punctuation, delete English articles, and split at white space. So "well-known"
    becomes the single word "wellknown", "A.N." becomes the article "an" and is deleted, while curly quotes and dashes
    are kept.

    Example:
        >>> normalized_words("The  cat's A-team, an old one.")
        ['cats', 'ateam', 'old', 'one']
    """
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def paper_token_usage(response: str) -> float:
    """Tokens of a response by the formula T = LR × 4 / 3, where LR is the length of the response.

    From Şakar and Emekci 2024 (doi 10.1017/nlp.2024.53), for comparison with its figures. **The paper does not give the
    unit of LR.** Words are used here, since 4 tokens per 3 words is the usual rule of thumb for English text. The
    formula ignores the prompt and all calls before the last one: to know what was spent, use the counted tokens.

    Args:
        response: Answer of the model.

    Returns:
        Number of tokens, from 0; usually not a whole number.

    Raises:
        OptionError: `response` is not a string.

    Example:
        >>> paper_token_usage("Because the bear ate honey.")
        6.666666666666667
    """
    check_text("response", response)
    return len(response.split()) * 4 / 3


def long_context_share(tokens_read: int, tokens_of_sources: int) -> float | None:
    """Tokens read, as a share of the tokens of the whole sources.

    The cost reported by Self-Route (Li et al. 2024, arXiv 2407.16833). It exceeds 1 if a question was routed to the
    long context, since the model then read the retrieved chunks and the whole sources. Averaging the shares over
    questions weights short and long documents equally; dividing total tokens read by total source tokens weights each
    token equally.

    Args:
        tokens_read: Tokens that the model read for one question, over all calls.
        tokens_of_sources: Tokens of the same question with the whole sources. Use the same tokenizer for both counts,
            and include the prompt around the context in both or in neither.

    Returns:
        The share, from 0; None if the sources have no tokens.

    Raises:
        OptionError: A count is not an integer >= 0.

    Example:
        >>> long_context_share(2_000, 125_000)
        0.016
    """
    check_count("tokens_read", tokens_read, optional=False, minimum=0)
    check_count("tokens_of_sources", tokens_of_sources, optional=False, minimum=0)
    return tokens_read / tokens_of_sources if tokens_of_sources else None


def answer_cosine(prediction_vector: Iterable[float], answer_vectors: Iterable[Iterable[float]]) -> float:
    """Cosine similarity of a prediction and its most similar gold answer.

    The score of Şakar and Emekci (doi 10.1017/nlp.2024.53). Values are comparable only if all vectors come from the
    same embedder. An empty text has no meaningful vector; the caller decides its score.

    Args:
        prediction_vector: Vector of the model's answer, of shape (dimension,).
        answer_vectors: Vectors of the gold answers, of shape (answers, dimension); the best score counts.

    Returns:
        A value from -1 to 1; 0 if one of the two vectors is all zeros.

    Raises:
        OptionError: `answer_vectors` is empty.
        EmbeddingError: Dimensions differ, or a value is not finite.

    Example:
        >>> answer_cosine([1, 0], [[0, 2], [3, 4]])
        0.6
    """
    prediction: Any = prediction_vector if isinstance(prediction_vector, Sized) else list(prediction_vector)
    cosines = [cosine(prediction, answer) for answer in answer_vectors]
    if not cosines:
        raise OptionError("answer_vectors must contain at least one vector, got none", answer_vectors)
    return max(cosines)


def check_texts(prediction: Any, answers: Any) -> None:
    """Check that the prediction is a string, and gold answers as in `check_answers`.

    Raises:
        OptionError: A value has the wrong type, or `answers` is empty.
    """
    check_text("prediction", prediction)
    check_answers("answers", answers)


def check_answers(name: str, answers: Any) -> None:
    """Check that the value is a sequence of at least one string.

    A question without gold answers must have no score: a score of 0 would lower the average of other questions.

    Raises:
        OptionError: The value is a single string, empty, not a sequence, or contains other types.
    """
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise OptionError(f"{name} must be a list or tuple of strings, got {describe(answers)}", answers)
    if not answers:
        raise OptionError(
            f"{name} must contain at least one string, got none; do not score questions without {name}", answers
        )
    for answer in answers:
        check_text(f"each of {name}", answer)
