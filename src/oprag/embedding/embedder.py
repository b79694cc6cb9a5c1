"""Embedders: models that turn questions and documents into vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DualEncoder", "Embedder", "FrameworkEmbedder", "WrappedEmbedder", "model_of"]

Encoder = Callable[[Sequence[str]], Any]


@runtime_checkable
class Embedder(Protocol):
    """A model with a question encoder and a document encoder.

    They are separate because models such as Contriever, Dragon and BGE encode questions differently from documents; for
    a symmetric model, both do the same.
    """

    @property
    def name(self) -> str:
        """Name of the model, for messages and for the results of `oprag compare`."""
        ...

    def embed_questions(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return vectors of shape (number of texts, dimension).

        Args:
            texts: The questions.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return vectors of shape (number of texts, dimension).

        Args:
            texts: The texts of the documents.
        """
        ...


@dataclass(frozen=True)
class DualEncoder:
    """An `Embedder` made of two functions.

    Attributes:
        name: Name of the model, for messages; `oprag compare` stores vectors under it.
        question: Function that encodes questions: texts to vectors of shape (number of texts, dimension).
        document: Function that encodes documents; same as `question` by default.

    Example:
        BGE expects an instruction before each question::

            model = SentenceTransformer("BAAI/bge-large-en-v1.5")
            instruction = "Represent this sentence for searching relevant passages: "
            embedder = DualEncoder(
                "bge-large-en-v1.5",
                question=lambda texts: model.encode([instruction + text for text in texts]),
                document=model.encode,
            )
    """

    name: str
    question: Encoder
    document: Encoder | None = None

    def embed_questions(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return vectors of shape (number of texts, dimension).

        Args:
            texts: The questions.
        """
        return _as_array(self.question(texts))

    def embed_documents(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return vectors of shape (number of texts, dimension).

        Args:
            texts: The texts of the documents.
        """
        return _as_array((self.document or self.question)(texts))


def _as_array(vectors: Any) -> "NDArray[np.float32]":
    import numpy as np

    return np.asarray(vectors, dtype=np.float32)


class WrappedEmbedder:
    """Base of embedders that wrap another embedding model, such as one of a framework."""

    def __init__(self, embeddings: Any) -> None:
        self.embeddings = embeddings

    @property
    def name(self) -> str:
        """The class of the model, for messages."""
        return type(self.embeddings).__name__


class FrameworkEmbedder(WrappedEmbedder):
    """An `Embedder` that wraps the embedding model of a framework, sync and async."""

    def __init__(self, embeddings: Any, question: str, documents: str) -> None:
        super().__init__(embeddings)
        # The names of its methods that embed a question and a list of texts; those of async methods begin with "a".
        self._question, self._documents = question, documents

    def embed_questions(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return list(map(getattr(self.embeddings, self._question), texts))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return vectors of shape (number of texts, dimension)."""
        return getattr(self.embeddings, self._documents)(list(texts))

    async def aembed_questions(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_questions`."""
        from asyncio import gather

        return await gather(*map(getattr(self.embeddings, f"a{self._question}"), texts))

    async def aembed_documents(self, texts: Sequence[str]) -> Any:
        """Async version of `embed_documents`."""
        return await getattr(self.embeddings, f"a{self._documents}")(list(texts))


def model_of(embedder: Any) -> Any:
    """The object that computes the vectors of an embedder: the model that it wraps, else itself."""
    while isinstance(embedder, WrappedEmbedder):
        embedder = embedder.embeddings
    return embedder
