"""The ways in which the stores of `benchmarks.orders_of_documents` are filled."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks.order_settings_truth import Truth

__all__ = ["HISTORIES", "Filling", "Handed", "handed"]


class Handed(NamedTuple):
    """What oprag returned: the keys of the chunks in order, and what it says about that order."""

    keys: list[str]
    certainty: str = ""
    doubted: bool = False


def handed(context: Any, key: Callable[[Any], str]) -> Handed:
    """Read a context; `certainty` and `doubts` are optional."""
    certainty = getattr(context, "certainty", "")
    doubts = bool(getattr(context, "doubts", ()))
    return Handed([key(chunk) for chunk in context.kept], str(getattr(certainty, "value", certainty)), doubts)


class Filling:
    """Splits documents and fills a store. The attributes without a value are methods of the subclasses.

    Args:
        sources: The documents (pages, rows) of each file, in order.
    """

    split: Any  # documents, scale of the chunk size -> [(number of the document, chunk)]
    add: Any
    delete: Any
    stamp: Any  # chunks -> chunks, with oprag
    key: Any  # chunk -> key
    text: Any  # document or chunk -> text
    changed: Any  # document, text -> document
    same: Any  # chunk -> what an incremental indexer compares
    ask: Any  # question, k -> what oprag returned

    def __init__(self, sources: Mapping[str, Sequence[Any]]) -> None:
        self.sources = sources
        self.truth = Truth()

    def record(self, source: str, documents: Sequence[Any], made: Iterable[tuple[int, Any]], version: str = "") -> None:
        """Record the true places of chunks."""
        texts = [self.text(document) for document in documents]
        self.truth.record(source, version, texts, [(self.key(one), number, self.text(one)) for number, one in made])

    def made(self, source: str, *, scale: float = 1, edition: str = "") -> list[Any]:
        """The chunks of a source, or of a second edition of its text, recorded."""
        documents = self.second_edition(source) if edition else self.sources[source]
        made = self.split(documents, scale)
        self.record(source, documents, made, edition)
        return [chunk for _, chunk in made]

    def second_edition(self, source: str) -> list[Any]:
        """The documents, each without a paragraph of its first half and with a new sentence in its second."""
        edited = []
        for document in self.sources[source]:
            paragraphs = self.text(document).split("\n\n")
            half = len(paragraphs) // 2
            paragraphs[half] = "This paragraph was revised in the second edition. " + paragraphs[half]
            del paragraphs[half // 2 : half // 2 + (half > 1)]
            edited.append(self.changed(document, "\n\n".join(paragraphs)))
        return edited


def _added(filling: Filling, source: str, arrange: Callable[[list[Any]], Iterable[list[Any]]]) -> None:
    for chunks in arrange(filling.made(source)):
        filling.add(chunks)


def _halves(chunks: list[Any]) -> tuple[list[Any], list[Any]]:
    return chunks[: len(chunks) // 2], chunks[len(chunks) // 2 :]


def _batches(chunks: list[Any]) -> list[list[Any]]:
    batches = [chunks[start : start + 10] for start in range(0, len(chunks), 10)]
    random.Random(1).shuffle(batches)
    return batches


def _deleted(filling: Filling, source: str) -> None:
    chunks = filling.made(source)
    filling.add(chunks)
    gone = chunks[len(chunks) // 3]
    filling.delete([gone])
    del filling.truth.spots[filling.key(gone)]


def _again(filling: Filling, source: str, **how: Any) -> None:
    filling.add(filling.made(source))
    filling.add(filling.made(source, **how))


def _edited(filling: Filling, source: str) -> None:
    """Only changed chunks are deleted and added."""
    old = [chunk for _, chunk in filling.split(filling.sources[source], 1)]
    filling.add(old)
    unchanged: dict[str, list[Any]] = defaultdict(list)
    for chunk in old:
        unchanged[filling.same(chunk)].append(chunk)
    documents = filling.second_edition(source)
    split = filling.split(documents, 1)
    now = [(number, left.pop(0) if (left := unchanged[filling.same(one)]) else one) for number, one in split]
    filling.delete([chunk for left in unchanged.values() for chunk in left])
    filling.add([chunk for (_, chunk), (_, new) in zip(now, split, strict=True) if chunk is new])
    filling.record(source, documents, now)


def _page_later(filling: Filling, source: str) -> None:
    documents = filling.sources[source]
    made = filling.split(documents, 1)
    filling.record(source, documents, made)
    filling.add([chunk for number, chunk in made if number != len(documents) // 3])
    filling.add([chunk for number, chunk in made if number == len(documents) // 3])


HISTORIES: Mapping[str, Callable[[Any, str], None]] = {
    "clean": lambda filling, source: _added(filling, source, lambda made: [made]),
    "second half first": lambda filling, source: _added(filling, source, lambda made: _halves(made)[::-1]),
    "batches mixed": lambda filling, source: _added(filling, source, _batches),
    "one chunk deleted": _deleted,
    "added again": _again,
    "added again, smaller": lambda filling, source: _again(filling, source, scale=0.6),
    "edited": _edited,
    "edited, old kept": lambda filling, source: _again(filling, source, edition="second"),
    "one page later": _page_later,
    "half stamped": lambda filling, source: _added(
        filling, source, lambda made: [_halves(filling.stamp(made))[0], _halves(made)[1]]
    ),
    "stamped": lambda filling, source: _added(filling, source, lambda made: [filling.stamp(made)]),
    "stamped in two calls": lambda filling, source: _added(
        filling, source, lambda made: map(filling.stamp, _halves(made))
    ),
}
"""Each fills a store with one source."""
