"""Finds the indexes, stores and docstores that retrievers and engines search, by one table of private attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.data_structs.data_structs import IndexDict, IndexList, KeywordTable
from llama_index.core.data_structs.document_summary import IndexDocumentSummary
from llama_index.core.storage.docstore.types import BaseDocumentStore

from oprag.errors import OptionError
from oprag.stores.adapter import StoreAdapter, adapter_of

__all__ = [
    "ATTRIBUTES",
    "Attributes",
    "Searched",
    "docstores_in",
    "merged_from",
    "searched_by",
    "searched_in",
    "store_of",
    "wrapped_in",
]


class Attributes(NamedTuple):
    """The attributes of a class of LlamaIndex that tell what it searches; empty for those that it does not have."""

    wrapped: tuple[str, ...] = ()  # the retrievers or engines that it asks: one, or a list or dictionary of them
    over_index: str = ""  # the index that it searches
    embed_model: str = ""  # the embedding model of its search
    keywords: str = ""  # keywords for the store's search, such as a tenant or a shard
    filters: str = ""  # the metadata filters of its search
    node_ids: str = ""  # the ids of the nodes that its search is restricted to
    doc_ids: str = ""  # the ids of the documents that its search is restricted to
    parents: str = ""  # the storage context with the nodes that it returns in place of those that it finds


_OVER_INDEX = Attributes(over_index="_index")
_OVER_RETRIEVER = Attributes(("_retriever",))
_OVER_ENGINE = Attributes(("_query_engine",))
_OVER_ENGINES = Attributes(("_query_engines",))

# By the name of the class, so that none has to be imported; a row also holds for subclasses. Few of the attributes are
# public, so tests compare each row with an object of the class.
ATTRIBUTES: Mapping[str, Attributes] = {
    # Of any retriever or engine, including ours and those of users.
    "BaseRetriever": Attributes(("retriever", "_retriever", "object_map")),
    "BaseQueryEngine": Attributes(("retriever", "_retriever")),
    "BaseChatEngine": Attributes(("retriever", "_retriever")),
    # Indexes with a model.
    "VectorStoreIndex": Attributes(embed_model="_embed_model"),
    "DocumentSummaryIndex": Attributes(embed_model="_embed_model"),
    "PropertyGraphIndex": Attributes(embed_model="_embed_model"),
    # Retrievers of an index.
    "VectorIndexRetriever": Attributes((), "_index", "_embed_model", "_kwargs", "_filters", "_node_ids", "_doc_ids"),
    "VectorIndexAutoRetriever": Attributes(over_index="_index", keywords="_kwargs", filters="_extra_filters"),
    "SummaryIndexRetriever": _OVER_INDEX,
    "SummaryIndexEmbeddingRetriever": Attributes(over_index="_index", embed_model="_embed_model"),
    "SummaryIndexLLMRetriever": _OVER_INDEX,
    "BaseKeywordTableRetriever": _OVER_INDEX,
    "DocumentSummaryIndexLLMRetriever": _OVER_INDEX,
    "DocumentSummaryIndexEmbeddingRetriever": Attributes(over_index="_index", embed_model="_embed_model"),
    "TreeAllLeafRetriever": _OVER_INDEX,
    "TreeSelectLeafRetriever": _OVER_INDEX,
    "TreeRootRetriever": _OVER_INDEX,
    # Retrievers of retrievers.
    "AutoMergingRetriever": Attributes(("_vector_retriever",), parents="_storage_context"),
    "QueryFusionRetriever": Attributes(("_retrievers",)),
    "RouterRetriever": Attributes(("_retrievers",)),
    "RecursiveRetriever": Attributes(("_retriever_dict", "_query_engine_dict")),
    "TransformRetriever": _OVER_RETRIEVER,
    "PGRetriever": Attributes(("sub_retrievers",)),
    # Engines.
    "RetrieverQueryEngine": _OVER_RETRIEVER,
    "CitationQueryEngine": _OVER_RETRIEVER,
    "TransformQueryEngine": _OVER_ENGINE,
    "RouterQueryEngine": _OVER_ENGINES,
    "SubQuestionQueryEngine": _OVER_ENGINES,
    "ContextChatEngine": _OVER_RETRIEVER,
    "CondensePlusContextChatEngine": _OVER_RETRIEVER,
    "CondenseQuestionChatEngine": _OVER_ENGINE,
}


class Searched(NamedTuple):
    """The components that were searched."""

    vector_store: Any  # the vector store; None if the nodes are found without vectors
    # The ids of nodes by the numbers of their vectors, for stores that number their vectors; without a vector store,
    # the ids of the nodes of the index.
    nodes: Mapping[str, str]
    docstore: Any  # the docstore, which contains the nodes
    embed_model: Any  # the embedding model of the index
    keywords: Mapping[str, Any]  # keywords for the store's search, such as a tenant or a shard
    # `filters`, `node_ids` and `doc_ids` of the search, without those that are not set.
    restrictions: Mapping[str, Any]


def wrapped_in(searched: Any) -> list[Any]:
    """The retrievers and engines that a retriever or an engine asks."""
    found: list[Any] = []
    for name in (name for row in _rows(searched) for name in row.wrapped):
        value = getattr(searched, name, None)
        found += value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    kinds = (BaseRetriever, BaseQueryEngine, BaseChatEngine)
    return list({id(one): one for one in found if isinstance(one, kinds)}.values())


def searched_by(searched: Any) -> list[Searched]:
    """The components that a retriever or an engine searches, by itself and in those that it asks; empty if unknown."""
    found = [_components(_value(one, "over_index"), one) for one in _all_in(searched)]
    return [one for one in found if one is not None]


def searched_in(index: Any, searched: Any = None) -> Searched:
    """The components of an index, with the search keywords and restrictions of a retriever or an engine."""
    retriever = next((one for one in _all_in(searched) if _value(one, "over_index") is not None), None)
    found = _components(index, retriever) or _components(index, None)
    if found is None:
        raise OptionError(f"index must be a LlamaIndex index, got {type(index).__name__}", index)
    return found


def _components(index: Any, retriever: Any) -> Searched | None:
    """The components of an index, with the search of a retriever over an index; None if they are not known."""
    names = (name for row in _rows(retriever) for name in row[1:] if name)
    if any(not hasattr(retriever, name) for name in names):
        # Without this check, a filter under an unknown name would be ignored.
        return None
    own = _value(retriever, "embed_model") if _value(retriever, "over_index") is index else None
    restrictions = {name: _value(retriever, name) for name in ("filters", "node_ids", "doc_ids")}
    try:
        struct, docstore = index.index_struct, index.docstore
        with_vectors = isinstance(struct, IndexDict)
        return Searched(
            index.vector_store if with_vectors else None,
            struct.nodes_dict if with_vectors else {str(row): name for row, name in enumerate(_node_ids(struct))},
            docstore,
            _value(index, "embed_model") if own is None else own,
            _value(retriever, "keywords") or {},
            {name: value for name, value in restrictions.items() if value is not None},
        )
    except AttributeError:
        return None


def store_of(searched: Searched, restrictions: Sequence[str] = ("filters",)) -> StoreAdapter | None:
    """The adapter of the searched store or docstore, with these restrictions of the search."""
    if searched.vector_store is None:
        return adapter_of(searched.docstore, nodes=searched.nodes)
    given = {name: searched.restrictions[name] for name in restrictions if name in searched.restrictions}
    return adapter_of(searched.vector_store, {**searched.keywords, **given}, searched.nodes, searched.docstore)


def merged_from(searched: Any) -> BaseDocumentStore | None:
    """The docstore of the parents that a search returns in place of the nodes inside them, if it does."""
    contexts = (_value(one, "parents") for one in _all_in(searched))
    docstores = (getattr(context, "docstore", None) for context in contexts)
    return next((docstore for docstore in docstores if isinstance(docstore, BaseDocumentStore)), None)


def docstores_in(searched: Any) -> list[BaseDocumentStore]:
    """The docstores of all nodes that a retriever or an engine returns."""
    found = [merged_from(searched), *(one.docstore for one in searched_by(searched))]
    return list({id(one): one for one in found if isinstance(one, BaseDocumentStore)}.values())


def _all_in(searched: Any) -> Iterator[Any]:
    """A retriever or an engine, and all that it asks, each once."""
    seen: set[int] = set()
    left = [searched]
    while left:
        one = left.pop(0)
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            left += wrapped_in(one)


def _rows(searched: Any) -> Iterator[Attributes]:
    for kind in type(searched).__mro__:
        if kind.__name__ in ATTRIBUTES and kind.__module__.startswith("llama_index."):
            yield ATTRIBUTES[kind.__name__]


def _value(searched: Any, role: str) -> Any:
    """Return the attribute that has this role, or None if the object lacks it."""
    names = (name for row in _rows(searched) if (name := getattr(row, role)))
    return next((value for name in names if (value := getattr(searched, name, None)) is not None), None)


def _node_ids(struct: Any) -> Collection[str]:
    """The ids of the nodes of an index that has no vectors; empty if all nodes of its docstore may belong to it."""
    if isinstance(struct, IndexList):
        return struct.nodes
    if isinstance(struct, KeywordTable):
        return set().union(*struct.table.values())
    return struct.node_id_to_summary_id if isinstance(struct, IndexDocumentSummary) else ()
