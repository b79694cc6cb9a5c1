"""Obtain vectors of chunks and questions: from the chunk, the store, the cache, or else the embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from oprag._internal.masking import describe, error_text, masked_error
from oprag._internal.sync_async import Step, Steps
from oprag._internal.warn import warn
from oprag.chunk import Chunk, changed
from oprag.context import ContextInputs
from oprag.errors import CacheError, CacheWarning, EmbeddingError, OpragError, OptionError
from oprag.options import ContextOptions
from oprag.stores.adapter import StoreAdapter, StoredVector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from oprag.embedding.vector_cache import Kind, VectorCache

__all__ = [
    "VectorSources",
    "chunks_with_vectors",
    "embedded_once",
    "embedded_together",
    "given_with_vectors",
    "question_vector",
]

T = TypeVar("T")


@dataclass(frozen=True)
class VectorSources:
    """The sources of vectors."""

    embedder: Any = None  # an `Embedder`; if it is also async, with `aembed_questions` and `aembed_documents`
    cache: VectorCache | None = None
    store: StoreAdapter | None = None  # that the chunks came from, if it returns vectors of the same embedder
    # The text to embed for a chunk; a framework may add metadata to it.
    text_of: Callable[[Chunk], str] = lambda chunk: chunk.text
    embedder_option: str = "embeddings"  # the framework's name of the option, for messages

    def check(self, options: ContextOptions) -> None:
        """Reject thresholds if vectors cannot be obtained."""
        # A store can provide the vectors of chunks, but not that of the question.
        stored = self.store is not None and options.similarity_threshold is None
        if options.needs_vectors and not (self.embedder or stored):
            raise OptionError(
                f"thresholds require vectors, but there is no embedding model; pass {self.embedder_option}=...", None
            )


def given_with_vectors(
    given: ContextInputs, question: str, context_options: ContextOptions, sources: VectorSources
) -> Steps[ContextInputs]:
    """The inputs of a context, with the vectors that its thresholds need."""
    chunks, vector = given.chunks, given.question_vector
    if vector is None and chunks and context_options.similarity_threshold is not None:
        vector = yield from question_vector(question, sources)
    # Only candidates need vectors.
    candidates = yield from chunks_with_vectors(chunks[: context_options.considered], sources)
    return replace(given, chunks=[*candidates, *chunks[len(candidates) :]], question_vector=vector)


def question_vector(question: str, sources: VectorSources) -> Steps[NDArray[np.float32]]:
    """The vector of a question, of shape (dimension,): from the cache, else from the embedder."""
    if sources.embedder is None:
        raise EmbeddingError(
            f"similarity_threshold requires the vector of the question; pass {sources.embedder_option}=...", None
        )
    vectors = yield from embedded_once(sources.embedder, sources.cache, "question", {question: question})
    return vectors[question].vector


def chunks_with_vectors(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[list[Chunk]]:
    """Add vectors to chunks, each from the first source that contains it."""
    known = {chunk.rank: _KnownVector(chunk.vector, "the chunk itself") for chunk in chunks if chunk.vector is not None}
    store = sources.store
    if store is not None:
        known |= yield from _in_store([chunk for chunk in chunks if chunk.rank not in known], store, sources.text_of)
    # Images have no text to embed, and metadata does not describe them.
    missing = [chunk for chunk in chunks if chunk.rank not in known and chunk.text.strip()]
    if missing:
        known |= yield from _embedded_chunks(missing, sources)
    if len({len(one.vector) for one in known.values()}) > 1:
        # Raises an error that names the vectors with different dimensions.
        owners = [chunk for chunk in chunks if chunk.rank in known]
        _rows([known[chunk.rank].vector for chunk in owners], owners, lambda chunk: known[chunk.rank].origin)
    return [changed(chunk, vector=known[chunk.rank].vector) if chunk.rank in known else chunk for chunk in chunks]


class _KnownVector(NamedTuple):
    """A vector and its origin (the embedder, store or cache), for messages."""

    vector: NDArray[np.float32]
    origin: str


def _rows(vectors: Any, owners: Sequence[Chunk | str], origin_of: Callable[[Any], str]) -> NDArray[np.float32]:
    """Convert vectors of chunks or of the question to validated rows."""
    from oprag.embedding.cosine import usable_rows

    return usable_rows(vectors, owners, lambda owner: f"{_name_of(owner)} from {origin_of(owner)}")


def _name_of(owner: Chunk | str) -> str:
    return f"a chunk ({owner.label()})" if isinstance(owner, Chunk) else "the question"


def _in_store(
    chunks: Sequence[Chunk], store: StoreAdapter, text_of: Callable[[Chunk], str]
) -> Steps[dict[int, _KnownVector]]:
    """The vectors of these chunks that the store contains."""
    keyed = [(chunk, key) for chunk in chunks if (key := store.key(chunk)) is not None]
    if not keyed:
        return {}
    keys = list(dict.fromkeys(key for _, key in keyed))
    origin = f"the store {store.name}"
    try:
        records = yield Step(lambda: store.vectors(keys), lambda: store.avectors(keys))
    except OpragError:
        raise
    except Exception as error:
        # Shortened, since store clients repeat all requested ids in their messages.
        reason = f"{type(error).__name__}: {shorten(error_text(error), 300)}"
        first = keyed[0][0]
        what = f"the vectors of {len(keys)} chunks (the first: {first.label()})"
        raise EmbeddingError(f"{origin} failed to return {what}: {reason}", first) from error
    if not isinstance(records, Mapping) or not all(isinstance(record, StoredVector) for record in records.values()):
        raise EmbeddingError(f"the adapter of {origin} must return a mapping of keys to StoredVectors", records)
    if unknown := set(records).difference(keys):
        raise EmbeddingError(
            f"{origin} returned a vector for {describe(min(unknown))}, which is not among the {len(keys)} requested "
            "chunks; check that it is the same collection",
            min(unknown),
        )
    # Stored vectors are not used for chunks whose text was changed after the search.
    used = [
        (chunk, record.vector)
        for chunk, key in keyed
        if (record := records.get(key)) is not None
        and record.vector is not None
        and record.text in (None, chunk.text, text_of(chunk))
    ]
    if not used:
        return {}
    rows = _rows([vector for _, vector in used], [chunk for chunk, _ in used], lambda _: origin)
    return {chunk.rank: _KnownVector(row, origin) for (chunk, _), row in zip(used, rows, strict=True)}


def _embedded_chunks(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[dict[int, _KnownVector]]:
    """The vectors of chunks from the cache, else from the embedder; identical texts are embedded once."""
    if sources.embedder is None:
        chunk = chunks[0]
        where = "" if sources.store is None else f" in the store {sources.store.name}"
        raise EmbeddingError(
            f"{len(chunks)} of the retrieved chunks have no vector{where} (the first: {chunk.label()}); pass "
            f"{sources.embedder_option}= to compute them",
            chunk,
        )
    by_text: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        by_text.setdefault(sources.text_of(chunk), []).append(chunk)
    owners = {text: same[0] for text, same in by_text.items()}
    vectors = yield from embedded_once(sources.embedder, sources.cache, "document", owners)
    return {chunk.rank: vectors[text] for text, same in by_text.items() for chunk in same}


def embedded_once(
    embedder: Any, cache: VectorCache | None, kind: Kind, owners: Mapping[str, Chunk | str]
) -> Steps[dict[str, _KnownVector]]:
    """The vector of each text: from the cache, else from the embedder in one call; the owners are for messages."""
    known = yield from _cached(embedder, cache, kind, list(owners))
    missing = {text: owner for text, owner in owners.items() if text not in known}
    return known | (yield from _embedded(embedder, cache, kind, missing))


def _cached(
    embedder: Any, cache: VectorCache | None, kind: Kind, texts: Sequence[str]
) -> Steps[dict[str, _KnownVector]]:
    """The cached vectors of these texts."""
    if cache is None or not texts:
        return {}
    nothing: list[NDArray[np.float32] | None] = [None] * len(texts)
    found = yield from _in_cache(lambda: cache.get(embedder, texts, kind), cache, nothing)
    return {
        text: _KnownVector(vector, "the vector cache")
        for text, vector in zip(texts, found, strict=True)
        if vector is not None
    }


def _embedded(
    embedder: Any, cache: VectorCache | None, kind: Kind, owners: Mapping[str, Chunk | str]
) -> Steps[dict[str, _KnownVector]]:
    """Embed texts in one call, and cache the vectors."""
    if not owners:
        return {}
    from oprag.embedding.cosine import as_matrix

    texts, named = list(owners), list(owners.values())
    origin = f"the embedder {embedder.name}"
    try:
        given = yield _call(embedder, kind, texts)
    except OpragError:
        raise
    except Exception as error:
        first = _name_of(named[0])
        what = first if len(named) == 1 else f"{len(named)} texts (the first: {first})"
        raise EmbeddingError(f"{origin} failed on {what}: {masked_error(error)}", named[0]) from error
    rows = _rows(as_matrix(given, len(texts), origin), named, lambda _: origin)
    if cache is not None:
        yield from _in_cache(lambda: cache.put(embedder, texts, rows, kind), cache, None)
    return {text: _KnownVector(row, origin) for text, row in zip(texts, rows, strict=True)}


def _call(embedder: Any, kind: Kind, texts: list[str]) -> Step:
    method = "embed_questions" if kind == "question" else "embed_documents"
    run, arun = getattr(embedder, method), getattr(embedder, f"a{method}", None)
    return Step(lambda: run(texts), None if arun is None else lambda: arun(texts))


def _in_cache(run: Callable[[], T], cache: VectorCache, otherwise: T) -> Steps[T]:
    """The result of a cache operation; if it fails, warn and return `otherwise`, since caching is optional."""
    # A memory cache is fast enough to call directly.
    if cache.path is None:
        return run()
    try:
        return (yield Step(run))  # type: ignore[no-any-return]
    except CacheError as error:
        warn(f"{error}; vectors are computed and not cached", CacheWarning, f"vector cache {cache.path}")
        return otherwise


def embedded_together(
    embedder: Any, cache: VectorCache | None, questions: Sequence[str], texts: Sequence[str]
) -> Steps[tuple[Sequence[Any], Sequence[Any]]]:
    """A vector for each question (cached: its search may have embedded it) and each text; the caller checks them."""
    cached = yield from _cached(embedder, cache, "question", list(questions))
    new = list(dict.fromkeys(question for question in questions if question not in cached))
    distinct = list(dict.fromkeys(texts))
    of_new = (yield _call(embedder, "question", new)) if new else []
    of_texts = (yield _call(embedder, "document", distinct)) if distinct else []
    if (len(of_new), len(of_texts)) != (len(new), len(distinct)):
        return of_new, of_texts
    by_question = {text: known.vector for text, known in cached.items()} | dict(zip(new, of_new, strict=True))
    by_text = dict(zip(distinct, of_texts, strict=True))
    return [by_question[one] for one in questions], [by_text[text] for text in texts]
