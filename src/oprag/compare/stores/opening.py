"""Stores by their names, and stores of a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import ref

from oprag.compare.kinds import descends
from oprag.compare.providers.functions import required_function
from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe
from oprag.options import check_text

if TYPE_CHECKING:
    from oprag.compare.stores.empty import EmptyStore
    from oprag.compare.stores.store import Store

__all__ = ["STORE_NAMES", "open_store", "store_name"]

INDEX = "index"
# Each in a module of its own, with LangChain's store of the same name.
_LANGCHAIN = ("in_memory", "chroma", "faiss", "qdrant", "lancedb")

STORE_NAMES = (INDEX, *_LANGCHAIN)
"""The stores that need no function to be made."""

_used: dict[int, ref[Any]] = {}


def store_name(given: Any, name: str | None = None) -> str:
    """What a store is called in tables and in content addresses, the same in every process.

    Args:
        given: What `open_store` takes.
        name: What the user calls it.

    Raises:
        ExperimentError: It has no name, and needs one.
        OptionError: `name` is no string.
    """
    check_text("name", name, optional=True)
    if name is not None and name.strip():
        return name
    if isinstance(given, str):
        return given
    path = f"{getattr(given, '__module__', None)}:{getattr(given, '__qualname__', '<')}"
    if "<" in path:
        raise ExperimentError(f"a store that is given as a {type(given).__name__} needs a name", given)
    return path


def open_store(given: Any, embedder_name: str, *, name: str | None = None) -> Store:
    """An empty store, all of which compare by cosine.

    Args:
        given: One of `STORE_NAMES`; MODULE:FUNCTION or a function of LangChain `Embeddings` that gives an empty
            LangChain vector store; a function of nothing that gives an empty LlamaIndex vector store, or such a store
            itself, which can be opened once. A function may give a context manager of the store in place of the store,
            to clean up behind it. What it embeds is handed out by the `Embeddings` that it is given, so a store must be
            told to use these, and to compare by cosine, or by the inner product or the distance of unit vectors.
        embedder_name: The name of the embedder whose vectors are put in.
        name: What the store is called in tables; by default as it is given.

    Raises:
        ExperimentError: There is no such store.
        MissingExtraError: What it needs is not installed.

    Example:
        A store in PostgreSQL, as a function of the module `my_stores`, which the experiment calls "my_stores:pgvector";
        one in Pinecone is made in the same way::

            @contextmanager
            def pgvector(embeddings):
                store = PGVector(embeddings, connection=URL, collection_name=f"oprag_{uuid4().hex}", use_jsonb=True)
                try:
                    yield store
                finally:
                    store.delete_collection()
    """
    label = store_name(given, name)
    if given == INDEX:
        from oprag.compare.stores.exact import ExactStore

        return ExactStore()
    if descends(given, "llama_index", "BasePydanticVectorStore"):
        return _of_llama_index(label, given, ExitStack())
    if isinstance(given, str):
        if given not in _LANGCHAIN and ":" not in given:
            known = ", ".join((*STORE_NAMES, "MODULE:FUNCTION"))
            raise ExperimentError(f"a store must be one of {known}, got {describe(given)}", given)
        if given in _LANGCHAIN:
            open_empty = import_module(f"oprag.compare.stores.{given}").open_empty
            return _of_langchain(label, open_empty, embedder_name)
        given = required_function(given)
    if descends(given, "langchain_core", "VectorStore"):
        raise ExperimentError(
            f"a {type(given).__name__} embeds by itself; give a function of Embeddings that gives an empty one", given
        )
    if not callable(given):
        raise ExperimentError(f"a store must be a name or a function that gives one, got {describe(given)}", given)
    if not _takes_embeddings(given):
        opened = ExitStack()
        return _of_llama_index(label, _entered(given(), opened), opened)
    return _of_langchain(label, lambda embeddings, _: _own(label, given, embeddings), embedder_name)


def _of_langchain(label: str, open_empty: Callable[[Any, int], EmptyStore], embedder: str) -> Store:
    try:
        from oprag.compare.stores.langchain_store import LangChainStore
    except ImportError as error:
        raise MissingExtraError(f"The store {label!r}", "langchain") from error
    return LangChainStore(label, open_empty, embedder)


def _own(label: str, function: Callable[[Any], Any], embeddings: Any) -> EmptyStore:
    """A LangChain store of the user's, of which nothing is known."""
    from oprag.compare.stores.empty import EmptyStore

    opened = ExitStack()
    store = _entered(function(embeddings), opened)
    if not descends(store, "langchain_core", "VectorStore"):
        opened.close()
        raise ExperimentError(f"{label} must give a LangChain vector store, got {describe(store)}", store)
    numbered = descends(store, "langchain_qdrant", "QdrantVectorStore")
    return EmptyStore(store, opened.close, key=int if numbered else str, threads=False)


def _of_llama_index(label: str, store: Any, opened: ExitStack) -> Store:
    if not descends(store, "llama_index", "BasePydanticVectorStore"):
        opened.close()
        raise ExperimentError(
            f"{label} takes no Embeddings, so it must give a LlamaIndex vector store; got {describe(store)}", store
        )
    known = _used.get(id(store))
    if known is not None and known() is store:
        raise ExperimentError(
            f"the store {label!r} is in use already; give a function that gives an empty one each time", store
        )
    _used[id(store)] = ref(store)
    from oprag.compare.stores.llama_index_store import LlamaIndexStore

    return LlamaIndexStore(label, store, opened.close)


def _entered(given: Any, opened: ExitStack) -> Any:
    """A store, or what a context manager of one gives."""
    if descends(given, "langchain_core", "VectorStore") or not hasattr(type(given), "__exit__"):
        return given
    return opened.enter_context(given)


def _takes_embeddings(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind(None)
    except (TypeError, ValueError):
        return False
    return True
