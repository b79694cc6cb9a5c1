"""BM25 search over the words of the chunks."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oprag._internal.lazy import import_extra

__all__ = ["BM25Search", "words"]

# Of Lucene's 33 English stop words. Without them, there are too few hits for a large k. With their full weight, a
# boilerplate question ("Highlight the parts of this contract that ...") finds boilerplate.
_STOP_WORD_WEIGHT = 0.3


def words(text: str) -> list[str]:
    """Return the searchable words of a text: runs of letters, marks, digits and underscores, in lower case.

    There is no stemming and no stop word removal, so that no language is assumed. Characters are normalized (NFKC).
    Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) are split into characters.

    Example:
        >>> words("Who's the Captain of HMS_2?")
        ['who', 's', 'the', 'captain', 'of', 'hms_2']
    """
    return unicodedata.normalize("NFKC", text).lower().translate(_SPACED).split()


class _Spaced(dict[int, str]):
    """A translation table that adds spaces around characters of scripts without spaces, and drops punctuation."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        # Letters, marks and numbers.
        in_word = letter == "_" or unicodedata.category(letter)[0] in "LMN"
        is_word = in_word and unicodedata.name(letter, "").startswith(_WITHOUT_SPACES)
        self[code] = f" {letter} " if is_word else letter if in_word else " "
        return self[code]


_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_SPACED = _Spaced()


class BM25Search:
    """Computes the BM25 scores of texts for a question with bm25s (Lucene's formula, k1 = 1.5, b = 0.75)."""

    def __init__(self, texts: Sequence[str]) -> None:
        bm25s = import_extra("bm25s", "BM25 search", "local")
        # Number words in order of appearance: bm25s's own numbering depends on the hash seed of the process.
        self._numbers: dict[str, int] = {}
        numbered = [[self._numbers.setdefault(word, len(self._numbers)) for word in words(text)] for text in texts]
        self._stop_words = frozenset(bm25s.stopwords.STOPWORDS_EN)
        self._count = len(texts)
        self._model = bm25s.BM25()
        if self._numbers:
            self._model.index((numbered, dict(self._numbers)), show_progress=False)

    def scores(self, question: str) -> NDArray[np.float32]:
        """Return the scores, of shape (number of chunks,); 0 for a chunk that shares no word with the question."""
        known = [word for word in words(question) if word in self._numbers]
        weak = [word for word in known if word in self._stop_words]
        scores = self._summed([word for word in known if word not in self._stop_words])
        return scores + np.float32(_STOP_WORD_WEIGHT) * self._summed(weak)

    def _summed(self, known: Sequence[str]) -> NDArray[np.float32]:
        if not known:
            return np.zeros(self._count, dtype=np.float32)
        scores: NDArray[np.float32] = self._model.get_scores_from_ids([self._numbers[word] for word in known])
        return scores
