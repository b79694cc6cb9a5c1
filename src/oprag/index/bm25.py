"""Lexical search: BM25 over the words of the chunks."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oprag.errors import MissingExtraError

__all__ = ["BM25Search", "words"]

# Left out altogether, they would leave too few hits for a large k; with their full weight, a question that is written
# like a form ("Highlight the parts of this contract that ...") finds what is written like one.
_STOP_WORD_WEIGHT = 0.3


def words(text: str) -> list[str]:
    """The searchable words of a text: runs of letters, marks, digits and underscores, in lower case.

    Nothing is stemmed and nothing left out, so that no language is assumed. Characters that are written in several ways
    are one (NFKC). Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are searched for
    by character.

    Example:
        >>> words("Who's the Captain of HMS_2?")
        ['who', 's', 'the', 'captain', 'of', 'hms_2']
    """
    return unicodedata.normalize("NFKC", text).lower().translate(_SPACED).split()


class _Spaced(dict[int, str]):
    """Each character as itself in a word, with spaces around it in a script without spaces, else as a space."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        # Letters, marks and numbers.
        within = letter == "_" or unicodedata.category(letter)[0] in "LMN"
        alone = within and unicodedata.name(letter, "").startswith(_WITHOUT_SPACES)
        self[code] = f" {letter} " if alone else letter if within else " "
        return self[code]


_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_SPACED = _Spaced()


class BM25Search:
    """The BM25 score of a question with each text, by the library bm25s: Lucene's formula, k1 = 1.5 and b = 0.75.

    The 33 English stop words of Lucene count 0.3 times in a question.

    Args:
        texts: The texts of the chunks.

    Raises:
        MissingExtraError: The extra `bm25` is not installed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        bm25s = _library()
        # Numbered as they appear: the library's own numbers depend on the hash seed of the process.
        self._numbers: dict[str, int] = {}
        numbered = [[self._numbers.setdefault(word, len(self._numbers)) for word in words(text)] for text in texts]
        self._stop_words = frozenset(bm25s.stopwords.STOPWORDS_EN)
        self._count = len(texts)
        self._model = bm25s.BM25()
        if self._numbers:
            self._model.index((numbered, dict(self._numbers)), show_progress=False)

    def scores(self, question: str) -> NDArray[np.float32]:
        """The scores, of shape (number of chunks,); 0 where a chunk has no word of the question."""
        known = [word for word in words(question) if word in self._numbers]
        weak = [word for word in known if word in self._stop_words]
        scores = self._summed([word for word in known if word not in self._stop_words])
        return scores + np.float32(_STOP_WORD_WEIGHT) * self._summed(weak) if weak else scores

    def _summed(self, known: Sequence[str]) -> NDArray[np.float32]:
        if not known:
            return np.zeros(self._count, dtype=np.float32)
        scores: NDArray[np.float32] = self._model.get_scores_from_ids([self._numbers[word] for word in known])
        return scores


def _library() -> Any:
    try:
        with _level_untouched("bm25s"):
            import bm25s
    except ImportError as error:
        raise MissingExtraError("BM25 search", "bm25") from error
    return bm25s


@contextmanager
def _level_untouched(name: str) -> Iterator[None]:
    """Undo what an import does to the level of its logger: the application decides what is logged."""
    logger = logging.getLogger(name)
    level = logger.level
    try:
        yield
    finally:
        logger.setLevel(level)
