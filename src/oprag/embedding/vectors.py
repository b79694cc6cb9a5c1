"""Where the vectors of chunks and questions come from: the chunk, its store, the cache, and only then the embedder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from oprag.chunk import Chunk, changed
from oprag.context import ContextInputs
from oprag.embedding.single_flight import wait_for
from oprag.errors import CacheError, CacheWarning, EmbeddingError, OpragError, OptionError
from oprag.masking import describe, error_text, masked_error
from oprag.options import ContextOptions
from oprag.steps import Step, Steps
from oprag.stores.adapter import StoreAdapter, StoredVector
from oprag.warn import warn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from oprag.embedding.cache import Kind, VectorCache

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
    store: StoreAdapter | None = None
    text_of: Callable[[Chunk], str] = lambda chunk: chunk.text
    embedder_option: str = "embeddings"

    @property
    def name(self) -> str:
        """The identity of the embedder."""
        return "no embedder" if self.embedder is None else self.embedder.name

    def check(self, options: ContextOptions) -> None:
        """Reject thresholds that nothing makes vectors for."""
        # A store may have vectors, and nothing that embeds a question.
        stored = self.store is not None and options.similarity_threshold is None
        if options.needs_vectors and not (self.embedder or stored):
            raise OptionError(
                f"thresholds need vectors, and nothing makes them here; give {self.embedder_option}=", None
            )


def given_with_vectors(
    given: ContextInputs, question: str, context_options: ContextOptions, sources: VectorSources
) -> Steps[ContextInputs]:
    """What a context with thresholds is made of."""
    chunks, vector = given.chunks, given.question_vector
    if vector is None and chunks and context_options.similarity_threshold is not None:
        vector = yield from question_vector(question, sources)
    # Only candidates get vectors.
    candidates = yield from chunks_with_vectors(chunks[: context_options.max_candidates], sources)
    return replace(given, chunks=[*candidates, *chunks[len(candidates) :]], question_vector=vector)


def question_vector(question: str, sources: VectorSources) -> Steps[NDArray[np.float32]]:
    """The vector of a question, of shape (dimension,): from the cache, else from the embedder."""
    if sources.embedder is None:
        raise EmbeddingError(
            f"similarity_threshold needs the vector of the question; give {sources.embedder_option}=", None
        )
    vectors = yield from embedded_once(sources.embedder, sources.cache, "question", {question: question})
    return vectors[question].vector


def chunks_with_vectors(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[list[Chunk]]:
    """The chunks with their vectors, each from the first source that has it."""
    known = {chunk.rank: _Known(chunk.vector, "the chunk itself") for chunk in chunks if chunk.vector is not None}
    store = sources.store
    if store is not None:
        known |= yield from _in_store([chunk for chunk in chunks if chunk.rank not in known], store, sources.text_of)
    # A picture has no text, and its metadata does not say what it shows.
    missing = [chunk for chunk in chunks if chunk.rank not in known and chunk.text.strip()]
    if missing:
        known |= yield from _embedded_chunks(missing, sources)
    if len({len(one.vector) for one in known.values()}) > 1:
        having = [chunk for chunk in chunks if chunk.rank in known]
        _rows([known[chunk.rank].vector for chunk in having], having, lambda chunk: known[chunk.rank].origin)
    return [changed(chunk, vector=known[chunk.rank].vector) if chunk.rank in known else chunk for chunk in chunks]


class _Known(NamedTuple):
    """A vector, and the embedder, the store or the cache that it came from, for messages."""

    vector: NDArray[np.float32]
    origin: str


def _rows(vectors: Any, owners: Sequence[Chunk | str], origin_of: Callable[[Any], str]) -> NDArray[np.float32]:
    """Vectors of chunks, or of the question, as rows that have a cosine similarity."""
    from oprag.embedding.cosine import usable_rows

    return usable_rows(vectors, owners, lambda owner: f"{_name_of(owner)} from {origin_of(owner)}")


def _name_of(owner: Chunk | str) -> str:
    return f"a chunk ({owner.label()})" if isinstance(owner, Chunk) else "the question"


def _in_store(
    chunks: Sequence[Chunk], store: StoreAdapter, text_of: Callable[[Chunk], str]
) -> Steps[dict[int, _Known]]:
    """The vectors that the store holds of these chunks."""
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
        # Clients of stores write all ids that were asked for into their messages.
        reason = f"{type(error).__name__}: {shorten(error_text(error), 300)}"
        first = keyed[0][0]
        what = f"the vectors of {len(keys)} chunks, the first of them {first.label()},"
        raise EmbeddingError(f"{origin} failed to give {what} with {reason}", first) from error
    if not isinstance(records, Mapping) or not all(isinstance(record, StoredVector) for record in records.values()):
        raise EmbeddingError(f"the adapter of {origin} must give a mapping of keys to StoredVectors", records)
    if strange := set(records).difference(keys):
        raise EmbeddingError(
            f"{origin} was asked for the vectors of {len(keys)} chunks and gave one of {describe(min(strange))}, which "
            "is not among them; is it another collection?",
            min(strange),
        )
    # A chunk whose text was changed after the search needs a vector of its own.
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
    return {chunk.rank: _Known(row, origin) for (chunk, _), row in zip(used, rows, strict=True)}


def _embedded_chunks(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[dict[int, _Known]]:
    """The vectors of chunks from the cache, else from the embedder, which is asked once for each text."""
    if sources.embedder is None:
        chunk = chunks[0]
        where = "" if sources.store is None else f" in the store {sources.store.name}"
        raise EmbeddingError(
            f"{len(chunks)} of the retrieved chunks have no vector{where}, the first one is {chunk.label()}; give "
            f"{sources.embedder_option}=, which makes them",
            chunk,
        )
    of_text: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        of_text.setdefault(sources.text_of(chunk), []).append(chunk)
    wanted = {text: same[0] for text, same in of_text.items()}
    vectors = yield from embedded_once(sources.embedder, sources.cache, "document", wanted)
    return {chunk.rank: vectors[text] for text, same in of_text.items() for chunk in same}


def embedded_once(
    embedder: Any, cache: VectorCache | None, kind: Kind, wanted: Mapping[str, Chunk | str]
) -> Steps[dict[str, _Known]]:
    """The vector of each text: from the cache, from another call that is embedding it, else from the embedder."""
    # Read once, since settings of a model may be changed meanwhile, and with them its name.
    name = embedder.name
    if cache is None:
        return (yield from _embedded(embedder, name, None, kind, wanted))
    known = yield from _cached(cache, name, kind, list(wanted))
    keys = {(name, kind, text): text for text in wanted if text not in known}
    mine, others = cache.in_flight.claim(keys)
    made: dict[Any, _Known] = {}
    try:
        # Another caller may have made them between the first look and now.
        known |= yield from _cached(cache, name, kind, [keys[key] for key in mine])
        left = {text: wanted[text] for key in mine if (text := keys[key]) not in known}
        known |= yield from _embedded(embedder, name, cache, kind, left)
        made = {key: known[keys[key]] for key in mine}
    finally:
        cache.in_flight.resolve(mine, made)
    if others:
        results = yield wait_for(list(others.values()))
        known |= {keys[key]: one for key, one in zip(others, results, strict=True) if one is not None}
        lost = {text: wanted[text] for key in others if (text := keys[key]) not in known}
        known |= yield from _embedded(embedder, name, cache, kind, lost)
    return known


def _cached(cache: VectorCache, name: str, kind: Kind, texts: Sequence[str]) -> Steps[dict[str, _Known]]:
    """The vectors of these texts that are in the cache."""
    if not texts:
        return {}
    none: list[NDArray[np.float32] | None] = [None] * len(texts)
    found = yield from _in_cache(lambda: cache.get(name, texts, kind), cache, none)
    return {
        text: _Known(vector, "the vector cache")
        for text, vector in zip(texts, found, strict=True)
        if vector is not None
    }


def _embedded(
    embedder: Any, name: str, cache: VectorCache | None, kind: Kind, wanted: Mapping[str, Chunk | str]
) -> Steps[dict[str, _Known]]:
    """Ask the embedder, in one call, and keep its vectors."""
    if not wanted:
        return {}
    from oprag.embedding.cosine import as_matrix

    texts, owners = list(wanted), list(wanted.values())
    origin = f"the embedder {name}"
    try:
        given = yield _call(embedder, kind, texts)
    except OpragError:
        raise
    except Exception as error:
        first = _name_of(owners[0])
        what = first if len(owners) == 1 else f"{len(owners)} texts, the first of them that of {first},"
        raise EmbeddingError(f"{origin} failed on {what} with {masked_error(error)}", owners[0]) from error
    rows = _rows(as_matrix(given, len(texts), origin), owners, lambda _: origin)
    if cache is not None and _is_still(embedder, name):
        yield from _in_cache(lambda: cache.put(name, texts, rows, kind), cache, None)
    return {text: _Known(row, origin) for text, row in zip(texts, rows, strict=True)}


def _call(embedder: Any, kind: Kind, texts: list[str]) -> Step:
    method = "embed_questions" if kind == "question" else "embed_documents"
    run, arun = getattr(embedder, method), getattr(embedder, f"a{method}", None)
    return Step(lambda: run(texts), None if arun is None else lambda: arun(texts))


def _is_still(embedder: Any, name: str) -> bool:
    """Whether the embedder is the model that it was before it embedded; its vectors are not kept otherwise."""
    if embedder.name == name:
        return True
    model = name.partition(" ")[0]
    warn(
        f"settings of the embedder {model} changed while it was embedding, so its vectors are not kept; if they change "
        'no vector, such as a counter, give it a name: as_embedder(..., name="...")',
        CacheWarning,
        f"changing embedder {model}",
    )
    return False


def _in_cache(run: Callable[[], T], cache: VectorCache, otherwise: T) -> Steps[T]:
    """The result of a cache, or something else where it fails: a vector is worth more than the cache."""
    # One in memory is not worth a thread.
    if cache.path is None:
        return run()
    try:
        return (yield Step(run))  # type: ignore[no-any-return]
    except CacheError as error:
        warn(f"{error}; vectors come from the embedder, and are not kept", CacheWarning, f"vector cache {cache.path}")
        return otherwise


def embedded_together(
    embedder: Any, cache: VectorCache | None, questions: Sequence[str], texts: Sequence[str]
) -> Steps[tuple[Sequence[Any], Sequence[Any]]]:
    """A vector for each question, which may be known from its search, and one for each text, unscaled."""
    name = embedder.name
    known = {} if cache is None else (yield from _cached(cache, name, "question", list(questions)))
    new = [one for one in dict.fromkeys(questions) if one not in known]
    asked = (yield _call(embedder, "question", new)) if new else []
    if new and cache is not None:
        # What vectors without a cosine mean here is for the caller to say.
        with suppress(EmbeddingError):
            rows = _rows(asked, new, lambda _: f"the embedder {name}")
            if _is_still(embedder, name):
                yield from _in_cache(lambda: cache.put(name, new, rows, "question"), cache, None)
    distinct = list(dict.fromkeys(texts))
    made = yield _call(embedder, "document", distinct)
    if len(asked) != len(new) or len(made) != len(distinct):
        # The caller says what is wrong with that.
        return asked, made
    vectors = {one: known[one].vector for one in known} | dict(zip(new, asked, strict=True))
    of_text = dict(zip(distinct, made, strict=True))
    return [vectors[one] for one in questions], [of_text[text] for text in texts]
