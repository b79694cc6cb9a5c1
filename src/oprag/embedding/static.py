"""An embedder without downloads, API keys or torch: static embeddings from the `wordllama` package."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oprag._internal.lazy import import_extra
from oprag._internal.tokens import whole_characters

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["LocalEmbedder", "local_embedder"]


class LocalEmbedder:
    """256-dimensional WordLlama embeddings, loaded from the files of the installed package.

    Fast and offline, for demos, tests and first experiments. A sentence encoder has better recall; see `DualEncoder`.

    Raises:
        MissingExtraError: The extra `local` is not installed.
    """

    name = "wordllama-l2-supercat-256"

    def __init__(self) -> None:
        self._model = _load()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A copy of the model's tokenizer without padding, for `split_tokens`; the model needs its own unchanged."""
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self._model.tokenizer.to_str())
        copy.no_padding()
        return copy

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text, for the option `count_tokens`.

        Args:
            text: The text.
        """
        return len(self.tokenizer.encode(whole_characters(text), add_special_tokens=False).ids)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (number of texts, 256).

        Args:
            texts: The questions.
        """
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (number of texts, 256).

        Args:
            texts: The texts of the documents.
        """
        vectors: NDArray[np.float32] = self._model.embed([whole_characters(text) for text in texts])
        return vectors


def _load() -> Any:
    # There is no wheel for Python 3.14, so the extra leaves it out.
    build = "pip install wordllama, which needs a C++ compiler on Python 3.14"
    wordllama = import_extra("wordllama", "The local embedder", "local", build if sys.version_info >= (3, 14) else None)
    # By default, the loader searches the wrong folder of its wheel, and would then download the files.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@cache
def local_embedder() -> LocalEmbedder:
    """The shared `LocalEmbedder`, loaded once."""
    return LocalEmbedder()
