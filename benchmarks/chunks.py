"""Retrieved chunks with the metadata of real pipelines, in random order."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.texts import sentences
from oprag import Chunk

__all__ = ["KINDS", "retrieved"]

KINDS = (
    "stamped",
    "offsets",
    "stamped, with offsets",
    "page and offset",
    "page only",
    "no position",
    "one source per chunk",
)
# About 128 tokens.
WORDS = 100
# Characters of the source between two retrieved chunks, unless all chunks were retrieved.
HOLE = 1_000
CHUNKS_ON_A_PAGE = 5


def retrieved(kind: str, count: int, *, among: int = 1, overlap: int = 0, seed: int = 0) -> list[Chunk]:
    """Return chunks as a retriever would.

    Args:
        kind: One of `KINDS`: the kind of metadata.
        count: Number of chunks.
        among: One in so many chunks of the source was retrieved; 1 = all of them, without gaps.
        overlap: Number of characters shared with the next chunk.
        seed: Seed of the texts and the ranks.
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
        case "page only":
            return {"source": "book.pdf", "page": page, "total_pages": 900}
        case "no position":
            return {"source": "book.txt"}
        case "one source per chunk":
            return {"source": f"note-{place}.txt", "chunk_index": 0}
    raise ValueError(f"unknown kind {kind!r}")
