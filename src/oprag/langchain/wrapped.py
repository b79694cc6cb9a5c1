"""What a retriever wraps, by the attributes that LangChain documents; anything else is treated as any retriever."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from langchain_core.documents import BaseDocumentCompressor
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.vectorstores import VectorStoreRetriever

__all__ = ["WITH_STEPS", "Search", "inside", "only_search", "searched_in", "takes", "unbound", "walk"]

Search = tuple[Any, Mapping[str, Any]]
"""A store, index or retriever that is searched, and the keyword arguments of the search."""

_RETRIEVERS = ("base_retriever", "retriever", "retrievers")
_WRAPPED = (*_RETRIEVERS, "base_compressor", "transformers", "bound", "default", "runnable", "fallbacks")
WITH_STEPS = (*_WRAPPED, "first", "middle", "last", "steps__", "branches")
"""What components wrap, and the steps of sequences, parallel steps and branches."""
_NOTHING: Mapping[str, Any] = MappingProxyType({})
# By name: `langchain_classic` may not be installed, and importing our own imports NumPy.
_COMPRESSION = "langchain_classic.retrievers.contextual_compression.ContextualCompressionRetriever"
_INDEX = "oprag.langchain.DocumentIndexRetriever"


def walk(component: Any, attributes: Sequence[str] = _WRAPPED) -> Iterator[Any]:
    """A retriever or compressor and everything that it wraps; of chains, their steps under `WITH_STEPS`."""
    yield component
    for inner in inside(component, attributes):
        yield from walk(inner, attributes)


def unbound(retriever: Any) -> Search:
    """The retriever inside bindings and retries, and the keyword arguments that they bind."""
    # Imported here, since LangChain imports them lazily.
    from langchain_core.runnables import RunnableBinding
    from langchain_core.runnables.retry import RunnableRetry

    keywords = _NOTHING
    # Not `isinstance`: a subclass may change the input.
    while type(retriever) in (RunnableBinding, RunnableRetry):
        retriever, keywords = retriever.bound, {**retriever.kwargs, **keywords}
    return retriever, keywords


def searched_in(retriever: Any) -> list[Search]:
    """All that a retriever searches; empty if that is unknown."""
    retriever, keywords = unbound(retriever)
    if isinstance(retriever, VectorStoreRetriever):
        return [(retriever.vectorstore, {**retriever.search_kwargs, **keywords})]
    # Other retrievers may ignore these keyword arguments, or not.
    if keywords or not isinstance(retriever, BaseRetriever):
        return []
    if _INDEX in map(_path, type(retriever).__mro__):
        return [(retriever.index, {})]  # type: ignore[attr-defined]
    inner = inside(retriever, _RETRIEVERS)
    return [search for one in inner for search in searched_in(one)] if inner else [(retriever, {})]


def only_search(retriever: Any) -> Search | None:
    """The search, if the retriever returns all that it finds; None if it may leave out chunks on purpose."""
    inner, keywords = unbound(retriever)
    kind = _path(type(inner))
    if kind == _COMPRESSION and not keywords:
        return only_search(inner.base_retriever)
    # Not `isinstance`: a subclass may search differently.
    known = type(inner) is VectorStoreRetriever or kind == _INDEX
    return next((search for search in searched_in(retriever) if known or search[0] is inner), None)


def takes(retriever: Any, keyword: str, *, is_async: bool = False) -> bool:
    """Whether a retriever uses a keyword argument. `**kwargs` is not enough: LangChain may drop it further down."""
    retriever, _ = unbound(retriever)
    if not isinstance(retriever, BaseRetriever):
        return False
    method = retriever._aget_relevant_documents if is_async else retriever._get_relevant_documents  # noqa: SLF001
    return isinstance(retriever, VectorStoreRetriever) or keyword in inspect.signature(method).parameters


def inside(component: Any, attributes: Sequence[str]) -> list[Any]:
    """What a component has in these attributes."""
    fields = vars(component) if isinstance(component, Runnable | BaseDocumentCompressor) else {}
    return [one for name in attributes for one in _each(fields.get(name))]


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple | Mapping):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _each(one)
    elif value is not None:
        yield value


def _path(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
