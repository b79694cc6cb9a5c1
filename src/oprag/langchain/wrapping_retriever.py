"""What an order-preserving retriever wraps, checked when it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams, RetrieverLike
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field, model_validator

from oprag.errors import OptionError
from oprag.langchain.embeddings_fields import EmbeddingsFields
from oprag.langchain.near_misses import RETRIEVER
from oprag.langchain.search import SearchType
from oprag.langchain.wrapped import searched_by, unwrapped
from oprag.option_fields import ContextFields
from oprag.options import OP_RAG_16K

if TYPE_CHECKING:
    from oprag.assembly.neighbors import NeighborReader
    from oprag.embedding.vectors import VectorSources

__all__ = ["WrappingRetriever", "with_store_defaults"]


def with_store_defaults(kind: type[ContextFields], given: dict[str, Any]) -> dict[str, Any]:
    """Options with the limits of a search in a vector store, unless a subclass has limits of its own."""
    limits = {name: limit for name, limit in OP_RAG_16K.items() if kind.model_fields[name].default is None}
    return limits | given


class WrappingRetriever(EmbeddingsFields, ContextFields, BaseRetriever):
    """The parts of a retriever around another one or around a vector store; see `OrderPreservingRetriever`."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True, defer_build=True)

    _near_misses: ClassVar = RETRIEVER

    retriever: RetrieverLike | None = Field(
        default=None, description="Any retriever; its documents are ranked by their place in the list."
    )
    vectorstore: VectorStore | None = Field(
        default=None,
        description="Any vector store, instead of retriever; k is then 128 and token_budget 16,384 by default.",
    )
    search_type: SearchType = Field(
        default="similarity",
        description="How vectorstore is searched: similarity, similarity_score_threshold or mmr.",
    )
    search_kwargs: dict[str, Any] = Field(
        default_factory=dict,
        description="Arguments for the search of vectorstore, such as filter or score_threshold.",
        repr=False,  # may hold keys
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in_store_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("vectorstore") is None:
            return values
        values = dict(values)
        search_kwargs = values.get("search_kwargs")
        if isinstance(search_kwargs, dict) and "k" in search_kwargs:
            if "k" in values:
                raise OptionError(
                    "k is given twice, as k and inside search_kwargs; leave it out of search_kwargs", search_kwargs
                )
            values["search_kwargs"] = {name: value for name, value in search_kwargs.items() if name != "k"}
            values["k"] = search_kwargs["k"]
        return with_store_defaults(cls, values)

    @model_validator(mode="after")
    def _check_what_is_wrapped(self) -> Self:
        if (self.retriever is None) == (self.vectorstore is None):
            raise OptionError("give either retriever= or vectorstore=", None)
        if any(isinstance(inner, WrappingRetriever) for inner in unwrapped(self.retriever)):
            raise OptionError(
                "the wrapped retriever already is an OrderPreservingRetriever: in an ordered list the place of a "
                "document no longer says how good it is; set its own options instead",
                self.retriever,
            )
        if self.vectorstore is None:
            if self.search_kwargs or self.search_type != "similarity":
                raise OptionError(
                    "search_type and search_kwargs go with vectorstore=, not with retriever=", self.search_kwargs
                )
        elif self.k is None and self.max_candidates is None:
            raise OptionError(
                "k=None with vectorstore= needs max_candidates, the number of documents to search for", None
            )
        if self.search_type == "similarity_score_threshold" and "score_threshold" not in self.search_kwargs:
            raise OptionError(
                'search_type="similarity_score_threshold" needs search_kwargs={"score_threshold": ...}',
                self.search_kwargs,
            )
        self._check_vectors()
        return self

    def _check_vectors(self) -> None:
        """Refuse thresholds and neighbours for which nothing is at hand, before the first question."""
        if self.embeddings is not None:
            # Loaded only for who gives them.
            from oprag.langchain.embedder import as_embedder

            as_embedder(self.embeddings)
        if self._context_options().needs_vectors:
            sources = self._vector_sources(None)
            # A store may hold vectors and have nobody who embeds a question.
            enough = sources.embedder or (sources.store and self.similarity_threshold is None)
            if not enough:
                raise OptionError("thresholds need vectors, and nothing makes them here; give embeddings=", None)
        if self.neighbors and self._neighbors() is None:
            raise OptionError(
                "neighbors needs read_neighbors=, a function that returns the documents around one, or the "
                "DocumentIndex that is searched",
                self.neighbors,
            )

    def _vector_sources(self, filter: Any) -> VectorSources:
        """Where vectors come from, for a search with this filter."""
        from oprag.langchain.compression import sources_for

        if self.vectorstore is not None:
            search = self.search_kwargs if filter is None else {**self.search_kwargs, "filter": filter}
            return sources_for(self, self.vectorstore, search)
        return sources_for(self, *(searched_by(self.retriever) or (None, {})))

    def _neighbors(self, filter: Any = None) -> NeighborReader | None:
        """What reads the chunks around one, for a search with this filter."""
        from oprag.langchain.around import neighbor_reader

        return neighbor_reader(self.read_neighbors, self.retriever, lambda: self.filter_of(filter))

    def filter_of(self, filter: Any) -> Any:
        """The filter of a search: that of the question, else that of the store's search.

        Raises:
            OptionError: It is not known.
        """
        from oprag.langchain.around import filter_of

        if filter is not None:
            return filter
        return self.search_kwargs.get("filter") if self.vectorstore is not None else filter_of(self.retriever)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:
        """What tracing shows: the store and the embedding model that are wrapped."""
        kwargs.pop("request", None)
        params = super()._get_ls_params(**kwargs)
        if self.vectorstore is not None:
            inner = self.vectorstore.as_retriever()._get_ls_params(**kwargs)  # noqa: SLF001
        elif isinstance(self.retriever, BaseRetriever):
            inner = self.retriever._get_ls_params(**kwargs)  # noqa: SLF001
        else:
            return params
        return {**inner, **params}
