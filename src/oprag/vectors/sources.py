"""Where the vectors of chunks come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from oprag.chunk import Chunk

if TYPE_CHECKING:
    from oprag.vectors.cache import VectorCache

__all__ = ["Record", "StoreReader", "VectorSources"]


class Record(NamedTuple):
    """What a store holds under a key.

    Attributes:
        vector: The vector, of shape (dimension,).
        text: The text that it belongs to, where the store gives it; a vector of another text is not used.
    """

    vector: Any
    text: str | None = None


class StoreReader(NamedTuple):
    """Reads vectors of a store by key.

    Attributes:
        name: The name of the store, for messages.
        read: Gives what the store holds under these keys; keys that it does not know are left out.
        aread: The same, async, where the store has an async client.
        key_of: The key of a chunk, its id by default; None where it has none.
    """

    name: str
    read: Callable[[Sequence[str]], Mapping[str, Record]]
    aread: Callable[[Sequence[str]], Awaitable[Mapping[str, Record]]] | None = None
    key_of: Callable[[Chunk], str | None] = lambda chunk: chunk.id


@dataclass(frozen=True)
class VectorSources:
    """Where vectors come from.

    Attributes:
        embedder: Embeds questions and documents: an `Embedder`, with `aembed_questions` and `aembed_documents` where it
            is async as well.
        cache: Vectors that were made before.
        store: The store that the chunks came from, if it gives vectors of the same embedder.
        text_of: The text of a chunk that is embedded; a framework may put more into it than the chunk's own.
        embedder_option: The option of the framework that takes the embedder, for messages.
    """

    embedder: Any = None
    cache: VectorCache | None = None
    store: StoreReader | None = None
    text_of: Callable[[Chunk], str] = lambda chunk: chunk.text
    embedder_option: str = "embeddings"

    @property
    def name(self) -> str:
        """The identity of the embedder."""
        return "no embedder" if self.embedder is None else self.embedder.name
