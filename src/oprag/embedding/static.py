"""An embedder that needs no download, no key and no torch: static embeddings that come with the `wordllama` package."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oprag.errors import MissingExtraError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["LocalEmbedder", "local_embedder"]


class LocalEmbedder:
    """The 256-dimensional WordLlama embeddings, from the files inside the installed package.

    Fast and offline, for demos, tests and first tries. A sentence encoder finds more; see `DualEncoder`.

    Raises:
        MissingExtraError: The extra `local` is not installed.
    """

    name = "wordllama-l2-supercat-256"

    def __init__(self) -> None:
        self._model = _load()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """A copy of the model's tokenizer, for `split_tokens`; the model depends on the settings of its own."""
        from tokenizers import Tokenizer

        copy = Tokenizer.from_str(self._model.tokenizer.to_str())
        copy.no_padding()
        return copy

    def count_tokens(self, text: str) -> int:
        """The tokens of a text, to be used as `count_tokens`.

        Args:
            text: The text.
        """
        return len(self.tokenizer.encode(_whole_characters(text), add_special_tokens=False).ids)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, 256).

        Args:
            texts: The questions.
        """
        return self.embed_documents(texts)

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (number of texts, 256).

        Args:
            texts: The texts of the documents.
        """
        vectors: NDArray[np.float32] = self._model.embed([_whole_characters(text) for text in texts])
        return vectors


def _whole_characters(text: str) -> str:
    """The text with "?" for half of a surrogate pair, which the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _load() -> Any:
    try:
        with _logging_untouched():
            import wordllama
    except ImportError as error:
        raise MissingExtraError("The local embedder", "local") from error
    # The loader looks for the files in another folder of its own wheel, and would then download them.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


@contextmanager
def _logging_untouched() -> Iterator[None]:
    """Undo that `import wordllama` configures the root logger of the application."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


@cache
def local_embedder() -> LocalEmbedder:
    """The embedded default, loaded once."""
    return LocalEmbedder()
