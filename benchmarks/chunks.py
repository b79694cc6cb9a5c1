"""Retrieved chunks with the metadata that real pipelines leave, in a random sequence of ranks."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.texts import sentences
from oprag import Chunk

__all__ = ["KINDS", "retrieved"]

KINDS = ("stamped", "offsets", "stamped, with offsets", "page and offset", "page alone", "no position", "a source each")
# About 128 tokens.
WORDS = 100
# Characters of the source between two chunks that were retrieved, where not all were.
HOLE = 1_000
CHUNKS_ON_A_PAGE = 5


def retrieved(kind: str, count: int, *, among: int = 1, overlap: int = 0, seed: int = 0) -> list[Chunk]:
    """Chunks as a retriever would give them.

    Args:
        kind: One of `KINDS`: what their metadata says.
        count: How many.
        among: One of how many chunks of the source was retrieved; 1 = all of them, without a hole.
        overlap: Characters that a chunk shares with the next one.
        seed: Of the texts and of the ranks.
    """
    chance = random.Random(seed)
    places = sorted(chance.sample(range(count * among), count))
    chunks: list[tuple[str, dict[str, Any]]] = []
    start, shared = 0, ""
    for place in places:
        text = shared + sentences(WORDS, chance) + " "
        chunks.append((text, _metadata(kind, place, start, start + len(text))))
        start += len(text) - overlap + (0 if among == 1 else HOLE)
        shared = text[len(text) - overlap :] if overlap else ""
    chance.shuffle(chunks)
    return [Chunk(text, rank, metadata=data, score=1 - rank / count) for rank, (text, data) in enumerate(chunks)]


def _metadata(kind: str, place: int, start: int, end: int) -> dict[str, Any]:
    page, on_page = divmod(place, CHUNKS_ON_A_PAGE)
    match kind:
        case "stamped":
            return {"source": "book.txt", "chunk_index": place}
        case "offsets":
            return {"source": "book.txt", "start_index": start}
        case "stamped, with offsets":
            return {"source": "book.txt", "chunk_index": place, "start_index": start, "end_index": end}
        case "page and offset":
            return {"source": "book.pdf", "page": page, "total_pages": 900, "start_index": on_page * HOLE}
        case "page alone":
            return {"source": "book.pdf", "page": page, "total_pages": 900}
        case "no position":
            return {"source": "book.txt"}
        case "a source each":
            return {"source": f"note-{place}.txt", "chunk_index": 0}
    raise ValueError(f"unknown kind {kind!r}")
