"""Embedders: models that turn questions and documents into vectors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from oprag.embedding.identity import identity_of
from oprag.errors import OptionError
from oprag.masking import describe
from oprag.options import check_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["DualEncoder", "Embedder", "NamedEmbedder", "named"]

Encoder = Callable[[Sequence[str]], Any]


@runtime_checkable
class Embedder(Protocol):
    """A model with a question encoder and a document encoder.

    They are separate because models such as Contriever, Dragon and BGE encode questions differently from documents; for
    a symmetric model, both do the same.
    """

    @property
    def name(self) -> str:
        """Identity of the model and its settings, saved with an index."""
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
        name: Identity of the model and its settings.
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


@dataclass(frozen=True)
class NamedEmbedder:
    """An embedding model of a framework, with a name.

    Attributes:
        embeddings: The embedding model.
        given_name: Name given by the user; the identity of the model by default.
    """

    embeddings: Any
    given_name: str | None = None

    @property
    def name(self) -> str:
        """The given name, else the identity of the model, computed each time, since settings may change."""
        return identity_of(self.embeddings).name if self.given_name is None else self.given_name

    @property
    def persistent(self) -> bool:
        """Whether the name is stable across processes."""
        return self.given_name is not None or identity_of(self.embeddings).persistent


def named(embeddings: Any, name: str | None, wrap: Callable[[Any, str | None], Any] | None, rule: str) -> Any:
    """Wrap a framework's embedding model as an `Embedder`; return an `Embedder` unchanged.

    Args:
        embeddings: The embedding model, or an `Embedder`.
        name: Name of the wrapped model; its identity by default.
        wrap: Creates the `Embedder`; None if the object cannot be wrapped.
        rule: Error message about the expected type.
    """
    if name is not None:
        check_text("name", name)
    if hasattr(embeddings, "embed_questions") and not isinstance(embeddings, type):
        if name not in (None, embeddings.name):
            raise OptionError(f"this embedder already has the name {embeddings.name!r}, got {describe(name)}", name)
        return embeddings
    if wrap is None:
        raise OptionError(f"{rule}, got {type(embeddings).__name__}", embeddings)
    return wrap(embeddings, name)
