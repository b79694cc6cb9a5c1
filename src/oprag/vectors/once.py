"""Embedding texts that are in no cache, each of them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oprag.chunk import Chunk
from oprag.errors import CacheError, CacheWarning, EmbeddingError, OpragError
from oprag.masking import masked_error
from oprag.steps import Step, Steps
from oprag.vectors.cache import Kind, VectorCache
from oprag.vectors.flights import landing
from oprag.vectors.rows import Known, check_rows, name_of, rows_of
from oprag.warn import warn

__all__ = ["Wanted", "embedded_once", "embedded_together"]

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
