"""Metrics of answer texts."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Sized
from functools import cache
from importlib import import_module
from typing import Any

from oprag.embedding.cosine import cosine
from oprag.errors import MissingExtraError, OptionError
from oprag.index.bm25 import words
from oprag.masking import describe
from oprag.options import check_count, check_text

__all__ = [
    "REVISION",
    "WITHOUT_SPACES",
    "answer_cosine",
    "choice_accuracy",
    "exact_match",
    "long_context_share",
    "normalized_words",
    "paper_token_usage",
    "rouge_l",
    "rouge_l_reads",
    "token_f1",
]


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """Word F1 of a prediction and its best-matching gold answer.

    2 · precision · recall / (precision + recall) over the words of both, counting repetitions, after
    `normalized_words`. This is `qa_f1_score` of ∞Bench (`src/compute_scores.py`), which is SQuAD's.

    If normalization leaves no words of the prediction or of an answer, their F1 is 0, even if both are empty, as in
    ∞Bench and SQuAD 1.1 (SQuAD 2.0 gives 1 if both are empty). In scripts without spaces between words, it is the F1 of
    characters.

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
    predicted = normalized_words(prediction)
    return max(_f1(predicted, normalized_words(answer)) for answer in answers)


def _f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    common = (Counter(predicted) & Counter(gold)).total()
    if not common:
        return 0.0
    # Same order of operations as the reference, so that results are bit-identical.
    precision, recall = common / len(predicted), common / len(gold)
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
    predicted = normalized_words(prediction)
    return float(bool(predicted) and any(predicted == normalized_words(answer) for answer in answers))


WITHOUT_SPACES = re.compile(
    # Thai, Lao, Burmese; Khmer; Chinese and Japanese with their punctuation and full-width forms
    "[\u0e00-\u109f\u1780-\u17ff\u3001-\u312f\u31f0-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff]"
)
"""A character of a script without spaces between words."""

_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_ARTICLES_BEFORE_WORDS = re.compile(r"\b(?:a|an|the)\s+(?=[a-z0-9])", re.ASCII)


def normalized_words(text: str) -> list[str]:
    """Split text into lower-case words without punctuation and articles.

    This is the rule of SQuAD's evaluation (Rajpurkar et al. 2016, arXiv 1606.05250), which ∞Bench uses unchanged:
    convert to lower case, delete ASCII punctuation, delete English articles, and split at white space. So "well-known"
    becomes the single word "wellknown", "A.N." becomes the article "an" and is deleted, while curly quotes and dashes
    are kept.

    That rule makes a single word of a Chinese sentence. So text in a script without spaces between words (Chinese,
    Japanese, Thai, Lao, Khmer, Burmese) is split into its characters and the words between them, as in the evaluation
    of MLQA (Lewis et al. 2020, arXiv 1910.07475) for Chinese; that of MKQA (Longpre et al. 2021, arXiv 2007.15207) also
    splits Japanese, Thai and Khmer by character. Full-width forms become ASCII, all other punctuation and symbols
    separate words, and an article is deleted only before another English word: the "A" of "维生素 A" is not an article.

    Example:
        >>> normalized_words("The  cat's A-team, an old one.")
        ['cats', 'ateam', 'old', 'one']
        >>> normalized_words("船长是 Ada。")
        ['船', '长', '是', 'ada']
    """
    plain = text.lower().translate(_PUNCTUATION)
    if WITHOUT_SPACES.search(text):
        return words(_ARTICLES_BEFORE_WORDS.sub(" ", plain))
    return _ARTICLES.sub(" ", plain).split()


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
    computation revisited").
    """
    short, long = sorted((first, second), key=len)
    places: dict[str, int] = {}
    for place, token in enumerate(short):
        places[token] = places.get(token, 0) | 1 << place
    row = full = (1 << len(short)) - 1
    for token in long:
        match = row & places.get(token, 0)
        row = (row + match | row - match) & full
    return len(short) - row.bit_count()


@cache
def _tokenizer() -> Callable[[str], Sequence[str]]:
    try:
        package = import_module("rouge_score.tokenizers")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error
    tokenize: Callable[[str], Sequence[str]] = package.DefaultTokenizer(use_stemmer=False).tokenize
    return tokenize


def rouge_l_reads(answers: Sequence[str]) -> bool:
    """Return whether ROUGE-L finds tokens in an answer; without them, any prediction scores 0."""
    return any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower())


def _refuse_unreadable(answers: Sequence[str]) -> None:
    """Reject answers that score 0 for any prediction."""
    if rouge_l_reads(answers):
        return
    for answer in answers:
        if any(map(str.isalnum, answer)):
            raise OptionError(
                f"the ROUGE-L tokenizer only recognizes a to z and 0 to 9, and finds no tokens in the answer "
                f"{describe(answer)}; use a custom metric for this language",
                answer,
            )


REVISION = "88b3daa6"
"""Latest commit of the official `choice_accuracy`; its rule has not changed since March 2024."""

_LETTERS = "ABCD"
_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_SPACES = re.compile(" {2,}")
_PHRASES = ("answer is:", "answer:", "answer is", "option is")


def choice_accuracy(prediction: str, labels: Sequence[str]) -> float:
    """1 if the prediction chooses the right option among A to D, else 0.

    The rule is `get_score_one_longbook_choice_eng` in `src/compute_scores.py` of ∞Bench (github OpenBMB/InfiniteBench)
    at commit 88b3daa6:

    1. If the prediction starts with A, B, C or D, this character is compared with the labels.
    2. Otherwise, a prediction that equals a label is right.
    3. Otherwise, line breaks and the characters `"'.,?!{}` are replaced by spaces, and the first of "answer is:",
       "answer:", "answer is" and "option is" that the text contains is decisive: the prediction is right if a label
       follows one character after it.
    4. Otherwise, the first word that is a substring of "ABCD" is compared with the labels.
    5. Otherwise, the prediction is wrong.

    Its quirks are kept, so that scores are comparable with published ones:

    - Step 1 reads "Because he fled" as B and "Don't know" as D. Lower-case letters are never recognized.
    - White space around the prediction is stripped first.
    - The text of the right option alone is right, unless it starts with another letter from A to D.
    - The phrases of step 3 are tried in this order, not in text order, and only in lower case. Once one is found, only
      the text after it counts: "the answer is option B" is wrong.
    - The character after the phrase is skipped: "answer:B" is wrong. The text after it only has to start with a label:
      "answer is: Cats" is right for C.
    - Labels keep their punctuation, but the prediction loses it: in step 3, an option such as "12 o'clock" never
      matches.
    - Step 4 only recognizes separate letters: "(B)", "*B*" and "B)" after another word are not found.
    - The phrases are English: "答案是B" is wrong, "B" and "答案是 B" are right.
    - In step 4, "AB", "BC", "CD", "ABC", "BCD" and "ABCD" also count as letters and are wrong, and so does the article
      "A" after another word ("It is A man" is read as A).

    Args:
        prediction: Answer of the model; may be empty.
        labels: Text and letter of the right option (`Question.labels`).

    Returns:
        0 or 1.

    Raises:
        OptionError: `prediction` is not a string, or `labels` is not a sequence of at least one string.

    Example:
        >>> choice_accuracy("The correct answer is: B. Mill Lane", ["Mill Lane", "B"])
        1.0
    """
    check_text("prediction", prediction)
    check_answers("labels", labels)
    prediction = prediction.strip()
    if not prediction:
        return 0.0
    if prediction[0] in _LETTERS:
        return float(prediction[0] in labels)
    if prediction in labels:
        return 1.0
    text = _SPACES.sub(" ", prediction.translate(_BLANKED))
    for phrase in _PHRASES:
        _, found, after = text.partition(phrase)
        if found:
            return float(after != "" and after[1:].startswith(tuple(labels)))
    return float(next((word in labels for word in text.split() if word in _LETTERS), False))


def paper_token_usage(response: str) -> float:
    """Tokens of a response by the formula T = LR × 4 / 3, where LR is the length of the response.

    From Şakar and Emekci 2024 (doi 10.1017/nlp.2024.53), for comparison with its figures. **The paper does not give the
    unit of LR.** Words are used here, since 4 tokens per 3 words is the usual rule of thumb for English text; text
    without spaces counts as one word. The formula ignores the prompt and all calls before the last one: to know what
    was spent, use the counted tokens.

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
