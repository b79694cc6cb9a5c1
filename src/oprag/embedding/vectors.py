"""Where the vectors of chunks come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk, fill
from oprag.context import ContextInputs
from oprag.embedding.cache import Kind, Known, VectorCache, check_rows, name_of, rows_of
from oprag.embedding.flights import landing
from oprag.errors import CacheError, CacheWarning, EmbeddingError, OpragError
from oprag.masking import describe, error_text, masked_error
from oprag.options import ContextOptions
from oprag.steps import Step, Steps
from oprag.warn import warn

if TYPE_CHECKING:
    from oprag.embedding.cache import VectorCache

__all__ = [
    "Record",
    "StoreReader",
    "VectorSources",
    "Wanted",
    "chunks_with_vectors",
    "embedded_once",
    "embedded_together",
    "given_with_vectors",
    "question_vector",
]


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


T = TypeVar("T")

Wanted = Mapping[str, Chunk | str]
"""Texts to embed; for each the chunk that it is of, or the question that it is."""


def embedded_once(embedder: Any, cache: VectorCache | None, kind: Kind, wanted: Wanted) -> Steps[dict[str, Known]]:
    """The vector of each text: from the cache, from whoever is embedding it at the moment, else from the embedder.

    Args:
        embedder: An `Embedder`, perhaps with async twins of its methods.
        cache: Where vectors are kept.
        kind: Whether texts are questions or documents.
        wanted: The texts.

    Raises:
        EmbeddingError: The embedder fails, or gives vectors that cannot be used; nothing is kept then.
    """
    # Read once, since settings of a model may be changed meanwhile, and with them its name.
    name = embedder.name
    known = yield from _kept(cache, name, kind, list(wanted))
    missing = {text: about for text, about in wanted.items() if text not in known}
    if not missing:
        return known
    if cache is None:
        return known | (yield from _embedded(embedder, name, None, kind, missing))
    keys = {(name, kind, text): text for text in missing}
    mine, others = cache.flights.claim(keys)
    made: dict[str, Known] = {}
    try:
        # Somebody may have made them between the first look and now.
        made |= yield from _kept(cache, name, kind, [keys[key] for key in mine])
        left = {keys[key]: missing[keys[key]] for key in mine if keys[key] not in made}
        if left:
            made |= yield from _embedded(embedder, name, cache, kind, left)
    finally:
        cache.flights.resolve(mine, lambda key: made.get(keys[key]))
    if others:
        landed = yield landing(list(others.values()))
        made |= {keys[key]: one for key, one in zip(others, landed, strict=True) if one is not None}
        lost = {keys[key]: missing[keys[key]] for key in others if keys[key] not in made}
        if lost:
            made |= yield from _embedded(embedder, name, cache, kind, lost)
    return known | made


def embedded_together(
    embedder: Any, cache: VectorCache | None, questions: Sequence[str], texts: Sequence[str]
) -> Steps[tuple[Sequence[Any], Sequence[Any]]]:
    """A vector for each question, which may be known from its search, and one for each text.

    Args:
        embedder: An `Embedder`, perhaps with async twins of its methods.
        cache: Where the vectors of questions are kept; texts are the model's answers, which nobody gives twice.
        questions: The questions.
        texts: The texts; equal ones are embedded once.
    """
    name = embedder.name
    known = yield from _kept(cache, name, "question", list(questions))
    new = [one for one in dict.fromkeys(questions) if one not in known]
    asked = (yield _step(embedder, "embed_questions", new)) if new else []
    if cache is not None and new and embedder.name == name:
        with suppress(EmbeddingError):
            rows = rows_of(asked, len(new), f"the embedder {name}")
            check_rows(rows, new, f"the embedder {name}")
            yield from _in_cache(lambda: cache.put(name, new, rows, "question"), cache, None)
    distinct = list(dict.fromkeys(texts))
    made = yield _step(embedder, "embed_documents", distinct)
    if len(asked) != len(new) or len(made) != len(distinct):
        # Whoever asked says what is wrong with that.
        return asked, made
    vectors = {one: known[one].vector for one in known} | dict(zip(new, asked, strict=True))
    of_text = dict(zip(distinct, made, strict=True))
    return [vectors[one] for one in questions], [of_text[text] for text in texts]


def _step(embedder: Any, method: str, texts: list[str]) -> Step:
    run, arun = getattr(embedder, method), getattr(embedder, f"a{method}", None)
    return Step(lambda: run(texts), None if arun is None else lambda: arun(texts))


def _kept(cache: VectorCache | None, name: str, kind: Kind, texts: Sequence[str]) -> Steps[dict[str, Known]]:
    """What the cache has of these texts."""
    if cache is None or not texts:
        return {}
    none: list[NDArray[np.float32] | None] = [None] * len(texts)
    found = yield from _in_cache(lambda: cache.get(name, texts, kind), cache, none)
    return {
        text: Known(vector, "the vector cache") for text, vector in zip(texts, found, strict=True) if vector is not None
    }


def _embedded(
    embedder: Any, name: str, cache: VectorCache | None, kind: Kind, wanted: Wanted
) -> Steps[dict[str, Known]]:
    """Ask the embedder, in one call, and keep what it gives, unless it has become another model meanwhile."""
    texts, values = list(wanted), list(wanted.values())
    method = "embed_questions" if kind == "question" else "embed_documents"
    origin = f"the embedder {name}"
    try:
        given = yield _step(embedder, method, texts)
    except OpragError:
        raise
    except Exception as error:
        first = name_of(values[0])
        what = first if len(values) == 1 else f"{len(values)} texts, the first of them that of {first},"
        raise EmbeddingError(f"{origin} failed on {what} with {masked_error(error)}", values[0]) from error
    rows = rows_of(given, len(texts), origin)
    check_rows(rows, values, origin)
    if cache is not None and embedder.name == name:
        yield from _in_cache(lambda: cache.put(name, texts, rows, kind), cache, None)
    return {text: Known(row, origin) for text, row in zip(texts, rows, strict=True)}


def _in_cache(run: Callable[[], T], cache: VectorCache, otherwise: T) -> Steps[T]:
    """What a cache does, or something else where it cannot: a vector that can be had is worth more than the cache."""
    # One in memory is not worth a thread.
    if cache.path is None:
        return run()
    try:
        return (yield Step(run))  # type: ignore[no-any-return]
    except CacheError as error:
        warn(f"{error}; vectors come from the embedder, and are not kept", CacheWarning, f"vector cache {cache.path}")
        return otherwise


def given_with_vectors(
    given: ContextInputs, question: str, context_options: ContextOptions, sources: VectorSources
) -> Steps[ContextInputs]:
    """What a context with thresholds is made of.

    Args:
        given: The retrieved chunks, and the vector of the question where the search needed it before.
        question: The question.
        context_options: The options.
        sources: Where vectors come from.

    Raises:
        EmbeddingError: A vector cannot be had or cannot be used.
    """
    chunks, vector = given.chunks, given.question_vector
    if vector is None and chunks and context_options.similarity_threshold is not None:
        vector = yield from question_vector(question, sources)
    # No vector is made for what is no candidate.
    candidates = yield from chunks_with_vectors(chunks[: context_options.max_candidates], sources)
    return replace(given, chunks=[*candidates, *chunks[len(candidates) :]], question_vector=vector)


def question_vector(question: str, sources: VectorSources) -> Steps[NDArray[np.float32]]:
    """The vector of a question, of shape (dimension,): from the cache, else from the embedder.

    Raises:
        EmbeddingError: There is no embedder, it fails, or its vector cannot be used.
    """
    if sources.embedder is None:
        raise EmbeddingError(
            f"similarity_threshold needs the vector of the question; give {sources.embedder_option}=", None
        )
    vectors = yield from embedded_once(sources.embedder, sources.cache, "question", {question: question})
    return vectors[question].vector


def chunks_with_vectors(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[list[Chunk]]:
    """The chunks with their vectors, each from the first source that has it.

    Args:
        chunks: Chunks that were made for this question, some of which may have vectors already; the others are filled
            in.
        sources: Where the others come from.

    Raises:
        EmbeddingError: A vector cannot be had or cannot be used.
    """
    by_rank = {chunk.rank: chunk for chunk in chunks}
    known = {chunk.rank: Known(chunk.vector, "the chunk itself") for chunk in chunks if chunk.vector is not None}
    store = sources.store
    if store is not None:
        known |= yield from _in_store([chunk for chunk in chunks if chunk.rank not in known], store, sources.text_of)
    # A picture has no text, and what stands about it in the metadata is not what it shows.
    missing = [chunk for chunk in chunks if chunk.rank not in known and chunk.text.strip()]
    if missing:
        known |= yield from _made(missing, sources)
    if len({len(one.vector) for one in known.values()}) > 1:
        raise _mixed(chunks, known)
    for rank, one in known.items():
        fill(by_rank[rank], vector=one.vector)
    return list(chunks)


def _in_store(chunks: Sequence[Chunk], store: StoreReader, text_of: Callable[[Chunk], str]) -> Steps[dict[int, Known]]:
    """The vectors that the store holds of these chunks."""
    keyed = [(chunk, key) for chunk in chunks if (key := store.key_of(chunk)) is not None]
    if not keyed:
        return {}
    keys = list(dict.fromkeys(key for _, key in keyed))
    aread, origin = store.aread, f"the store {store.name}"
    try:
        records = yield Step(lambda: store.read(keys), None if aread is None else lambda: aread(keys))
    except Exception as error:
        raise _unread(origin, keyed[0][0], len(keys), error) from error
    if not isinstance(records, Mapping) or not all(isinstance(record, Record) for record in records.values()):
        raise EmbeddingError(f"the adapter of {origin} must give a mapping of keys to oprag Records", records)
    if strange := set(records).difference(keys):
        raise EmbeddingError(
            f"{origin} was asked for the vectors of {len(keys)} chunks and gave one of {describe(min(strange))}, which "
            "is not among them; is it another collection?",
            min(strange),
        )
    # A chunk whose text was changed behind the search needs a vector of its own.
    used = [
        (chunk, record.vector)
        for chunk, key in keyed
        if (record := records.get(key)) is not None
        and record.vector is not None
        and record.text in (None, chunk.text, text_of(chunk))
    ]
    rows = _rows_of(used, origin)
    return {chunk.rank: Known(row, origin) for (chunk, _), row in zip(used, rows, strict=True)}


def _rows_of(given: Sequence[tuple[Chunk, Any]], origin: str) -> Sequence[NDArray[np.float32]]:
    """The vectors of chunks, checked; all at once, and one by one to find out which of them is at fault."""
    if not given:
        return []
    with suppress(EmbeddingError):
        rows = rows_of([vector for _, vector in given], len(given), origin)
        check_rows(rows, [chunk for chunk, _ in given], origin)
        return list(rows)
    one_by_one: list[NDArray[np.float32]] = []
    for chunk, vector in given:
        rows = rows_of([vector], 1, origin, f"the vector of {name_of(chunk)}")
        check_rows(rows, [chunk], origin)
        one_by_one.append(rows[0])
    return one_by_one


def _made(chunks: Sequence[Chunk], sources: VectorSources) -> Steps[dict[int, Known]]:
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


def _unread(origin: str, first: Chunk, count: int, error: Exception) -> OpragError:
    if isinstance(error, OpragError):
        return error
    # Clients of stores write all ids that were asked for into their messages.
    text = shorten(error_text(error), 300)
    what = f"the vectors of {count} chunks, the first of them {first.label()},"
    return EmbeddingError(f"{origin} failed to give {what} with {type(error).__name__}: {text}", first)


def _mixed(chunks: Iterable[Chunk], known: Mapping[int, Known]) -> EmbeddingError:
    """What is wrong with vectors of several dimensions, and where they come from."""
    having = [(chunk, known[chunk.rank]) for chunk in chunks if chunk.rank in known]
    first, one = having[0]
    other, another = next(pair for pair in having if len(pair[1].vector) != len(one.vector))
    return EmbeddingError(
        f"the vector of a chunk ({other.label()}) from {another.origin} has dimension {len(another.vector)}, that of "
        f"another ({first.label()}) from {one.origin} has {len(one.vector)}; vectors of different embedders cannot be "
        "compared",
        other,
    )
