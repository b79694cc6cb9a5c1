"""The functions of the metrics: scores of answer texts, and of retrieved chunks and their order."""

from __future__ import annotations

import re
import string
from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from importlib import import_module
from math import log2
from typing import Any

from oprag.embedding.cosine import cosine
from oprag.errors import MissingExtraError
from oprag.index.bm25 import words

__all__ = [
    "REVISION",
    "WITHOUT_SPACES",
    "answer_cosine",
    "choice_accuracy",
    "evidence_coverage",
    "exact_match",
    "inverted_pairs",
    "long_context_share",
    "mrr",
    "ndcg",
    "normalized_words",
    "paper_token_usage",
    "recall",
    "rouge_l",
    "rouge_l_reads",
    "token_f1",
    "touching",
]


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """Word F1 of a prediction and its best-matching gold answer.

    This is `qa_f1_score` of ∞Bench (`src/compute_scores.py`), which is SQuAD's, over `normalized_words`: without words,
    the F1 is 0 even if both are empty, as in SQuAD 1.1 (SQuAD 2.0 gives 1).
    """
    predicted = normalized_words(prediction)
    return max(_f1(predicted, normalized_words(answer)) for answer in answers)


def _f1(predicted: Sequence[str], gold: Sequence[str]) -> float:
    return _f_measure((Counter(predicted) & Counter(gold)).total(), predicted, gold)


def _f_measure(common: int, prediction: Sequence[str], answer: Sequence[str]) -> float:
    if not common:
        return 0.0
    # Same order of operations as the references, so that results are bit-identical.
    precision, recall = common / len(prediction), common / len(answer)
    return 2 * precision * recall / (precision + recall)


def exact_match(prediction: str, answers: Sequence[str]) -> float:
    """1 if a gold answer has the same words in the same order as the prediction, else 0.

    As in SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250), except that a prediction without words is never right, as in
    `token_f1`: so the exact match never exceeds the F1.
    """
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
    """Split text into lower-case words without ASCII punctuation and English articles, as SQuAD and ∞Bench do.

    Text in a script without spaces between words is split into its characters and the words between them, as in the
    evaluations of MLQA (Lewis et al. 2020, arXiv 1910.07475) and MKQA (Longpre et al. 2021, arXiv 2007.15207). There,
    full-width forms become ASCII, all other punctuation separates words, and an article is deleted only before another
    English word: the "A" of "维生素 A" is not an article.

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

    Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries". Tokens and scores match the `rouge-score`
    package without a stemmer, as used by SCROLLS for QMSum and by LongBench (the QMSum paper used ROUGE-1.5.5 with
    stemming). Its tokenizer only recognizes the letters a to z and digits.
    """
    tokenize = _tokenizer()
    predicted = tokenize(prediction)
    return max(_f_measure(_longest_common(gold, predicted), predicted, gold) for gold in map(tokenize, answers))


def _longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence; a table of all pairs would take 4 seconds for 4,000 tokens each.

    An integer is a row of that table, with a 0 bit where the length increases (Hyyrö 2004, "Bit-parallel LCS-length
    computation revisited").
    """
    places: dict[str, int] = {}
    for place, token in enumerate(first):
        places[token] = places.get(token, 0) | 1 << place
    row = full = (1 << len(first)) - 1
    for token in second:
        match = row & places.get(token, 0)
        row = (row + match | row - match) & full
    return len(first) - row.bit_count()


@cache
def _tokenizer() -> Callable[[str], Sequence[str]]:
    try:
        package = import_module("rouge_score.tokenizers")
    except ImportError as error:
        raise MissingExtraError("ROUGE-L", "compare") from error
    tokenize: Callable[[str], Sequence[str]] = package.DefaultTokenizer(use_stemmer=False).tokenize
    return tokenize


def rouge_l_reads(answers: Sequence[str]) -> bool:
    """Whether ROUGE-L finds tokens in an answer; without them, any prediction scores 0."""
    return any(letter.isascii() and letter.isalnum() for answer in answers for letter in answer.lower())


REVISION = "88b3daa6"
"""Latest commit of the official `choice_accuracy`; its rule has not changed since March 2024."""

_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_SPACES = re.compile(" {2,}")
_PHRASES = ("answer is:", "answer:", "answer is", "option is")


def choice_accuracy(prediction: str, labels: Sequence[str], letters: str = "ABCD") -> float:
    """1 if the prediction chooses the right option, else 0.

    The rule is `get_score_one_longbook_choice_eng` in `src/compute_scores.py` of ∞Bench (github OpenBMB/InfiniteBench)
    at commit 88b3daa6, with its quirks, so that scores are comparable with published ones:

    1. If the prediction starts with A, B, C or D, this character is compared with the labels: "Because he fled" is B.
    2. Otherwise, a prediction that equals a label is right.
    3. Otherwise, line breaks and the characters `"'.,?!{}` are replaced by spaces, and the first of "answer is:",
       "answer:", "answer is" and "option is" that the text contains, in this order, is decisive: the prediction is
       right if a label follows one character after it. So "answer:B" and "the answer is option B" are wrong.
    4. Otherwise, the first word that is a substring of "ABCD" is compared with the labels: "(B)" is not found, and "AB"
       is wrong.
    5. Otherwise, the prediction is wrong.

    The labels are the text and the letter of the right option (`Question.labels`). A question with more options has
    more letters, such as ABCDE.
    """
    prediction = prediction.strip()
    if not prediction:
        return 0.0
    if prediction[0] in letters:
        return float(prediction[0] in labels)
    if prediction in labels:
        return 1.0
    text = _SPACES.sub(" ", prediction.translate(_BLANKED))
    for phrase in _PHRASES:
        _, found, after = text.partition(phrase)
        if found:
            return float(after != "" and after[1:].startswith(tuple(labels)))
    return float(next((word in labels for word in text.split() if word in letters), False))


def paper_token_usage(response: str) -> float:
    """Tokens of a response by the formula T = LR × 4 / 3, where LR is the length of the response.

    From Şakar and Emekci 2024 (doi 10.1017/nlp.2024.53), for comparison with its figures. It does not give the unit of
    LR; words are used here, since 4 tokens per 3 words is the usual rule of thumb for English text.
    """
    return len(response.split()) * 4 / 3


def long_context_share(tokens_read: int, tokens_of_sources: int) -> float | None:
    """Tokens read, as a share of the tokens of the whole sources.

    The cost reported by Self-Route (Li et al. 2024, arXiv 2407.16833); above 1 if a question was routed to the sources.
    """
    return tokens_read / tokens_of_sources if tokens_of_sources else None


def answer_cosine(prediction_vector: Any, answer_vectors: Iterable[Any]) -> float:
    """Cosine similarity of a prediction and its most similar gold answer.

    The score of Şakar and Emekci (doi 10.1017/nlp.2024.53), from vectors of one embedder.
    """
    return max(cosine(prediction_vector, answer) for answer in answer_vectors)


Span = tuple[str, int, int]
"""A document, and the start and end (exclusive) of a span of its characters."""


def evidence_coverage(spans: Iterable[Span], evidence: Sequence[Span]) -> float | None:
    """Share of the gold evidence, in characters, that the retrieved spans cover.

    Each character counts once, even if several spans contain it; None if the evidence has no characters.
    """
    spans = list(spans)
    gold = _characters(evidence)
    return (_characters(spans) + gold - _characters([*spans, *evidence])) / gold if gold else None


def _characters(spans: Iterable[Span]) -> int:
    """Number of characters in the union of the spans."""
    count, last, latest = 0, 0, None
    for document, start, end in sorted(spans):
        if document != latest:
            last, latest = 0, document
        count += max(0, end - max(start, last))
        last = max(last, end)
    return count


def touching(spans: Iterable[Span], evidence: Sequence[Span]) -> frozenset[int]:
    """Indices of the spans that overlap the evidence."""
    return frozenset(
        place
        for place, (document, start, end) in enumerate(spans)
        if any(gold == document and max(start, begin) < min(end, stop) for gold, begin, stop in evidence)
    )


def recall(ranked: Sequence[int], relevant: Collection[int]) -> float | None:
    """Recall at k: share of the relevant chunks that were retrieved, with the k of the setting.

    None without relevant chunks, as for `mrr` and `ndcg`.
    """
    return sum(chunk in relevant for chunk in ranked) / len(relevant) if relevant else None


def mrr(ranked: Sequence[int], relevant: Collection[int]) -> float | None:
    """Reciprocal rank of the first relevant chunk; its mean over questions is the MRR."""
    if not relevant:
        return None
    return next((1 / rank for rank, chunk in enumerate(ranked, 1) if chunk in relevant), 0.0)


def ndcg(ranked: Sequence[int], relevant: Collection[int], k: int | None = None) -> float | None:
    """Normalized discounted cumulative gain (Järvelin and Kekäläinen 2002) with binary relevance.

    A relevant chunk at rank r (from 1) contributes 1 / log2(r + 1); the sum over k ranks is divided by that of the
    ideal ranking.
    """
    if not relevant:
        return None
    ideal = len(relevant) if k is None else min(k, len(relevant))
    return _discounted(chunk in relevant for chunk in ranked[:k]) / _discounted([True] * ideal)


def _discounted(gains: Iterable[bool]) -> float:
    return sum(1 / log2(rank + 1) for rank, gain in enumerate(gains, 1) if gain)


def inverted_pairs(positions: Iterable[tuple[str, int]]) -> float | None:
    """Share of chunk pairs of the same source that are not in source order.

    0 is source order, 1 its reverse, and a random order gives 0.5 on average: this is Kendall's tau distance divided by
    its maximum, pooled over the sources. Takes the source and position of each chunk, in the order in which the model
    reads them; None if no source has two chunks.
    """
    seen: defaultdict[str, list[int]] = defaultdict(list)
    inverted = pairs = 0
    for source, position in positions:
        earlier = seen[source]
        pairs += len(earlier)
        inverted += len(earlier) - bisect_right(earlier, position)
        insort(earlier, position)
    return inverted / pairs if pairs else None
