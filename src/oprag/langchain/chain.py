"""A chain that answers questions with any method, in the shape of LangChain's own retrieval chains."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs
from pydantic import ConfigDict, create_model

from oprag.errors import OptionError
from oprag.langchain.answering_chain import Inputs, once
from oprag.langchain.batch import Batching
from oprag.langchain.classic import classic_options
from oprag.langchain.full_answers import FullAnswers
from oprag.langchain.runs import as_run

__all__ = ["OrderPreservingChain"]


class OrderPreservingChain(Batching, FullAnswers):
    """Answers questions from retrieved documents in the order of their source, with any of the methods.

    It takes and gives what LangChain's `create_retrieval_chain` does: `{"input": question}` in; all inputs, `context`
    (documents) and `answer` out, streamed in the same pieces. `from_chain_type` is the same for `RetrievalQA`. With
    `chat_history` among the inputs, a follow-up is first made to stand by itself.

    Args:
        llm: Any LangChain model, also one with retries, fallbacks or structured output.
        retriever: Any retriever or vector store. One that is no `OrderPreservingRetriever` is wrapped in one, with the
            options of `oprag.ContextOptions` that are given here. A runnable that is no retriever gets all inputs.
        embeddings: LangChain embeddings or an `oprag.Embedder`, for `reciprocal` and `rank_by="cosine"`.
        vector_cache: Where vectors that were made are kept, those of the retriever too; that of an
            `OrderPreservingRetriever` by default, else 256 MiB in memory.
        read_source: Gives the whole text of a source, for `long_context` and `self_route`: a folder, a mapping of
            source names to texts, or a function of the name. Only sources that were retrieved are read.
        input_key: The key of the question.
        output_key: The key of the answer.
        documents_key: The key of the documents; None leaves them out.
        citations_key: The key of the citations with `cite=True`, a list of `Citation.to_dict()` and the last piece of
            a stream; None leaves them out.
        method: The method: stuff, map_reduce, refine, map_rerank, step_down, reciprocal, long_context, self_route, or
            a registered one.
        **options: The options of `oprag.methods.MethodOptions` and of `oprag.ContextOptions`.

    Raises:
        ValidationError: An option is unknown, invalid, or missing for the method (pydantic's error, which is a
            ValueError).

    Example:
        >>> from langchain_core.documents import Document
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.retrievers import BaseRetriever
        >>> found = [Document(text, metadata={"source": "abc", "chunk_index": i}) for i, text in ((1, "b"), (0, "a"))]
        >>> class Found(BaseRetriever):
        ...     def _get_relevant_documents(self, query, *, run_manager):
        ...         return found
        >>> chain = OrderPreservingChain(llm=FakeListChatModel(responses=["An answer."]), retriever=Found())
        >>> result = chain.invoke({"input": "A question?"})
        >>> result["answer"], [document.page_content for document in result["context"]]
        ('An answer.', ['a', 'b'])
    """

    model_config = ConfigDict(defer_build=False)

    @classmethod
    def from_chain_type(
        cls,
        llm: Runnable[Any, Any],
        chain_type: str = "stuff",
        chain_type_kwargs: Mapping[str, Any] | None = None,
        *,
        return_source_documents: bool = False,
        **options: Any,
    ) -> Runnable[Inputs, dict[str, Any]]:
        """A chain for code that was written for `RetrievalQA.from_chain_type`.

        Args:
            llm: The model.
            chain_type: The method: stuff, map_reduce, refine, map_rerank, or any other one.
            chain_type_kwargs: The prompts, by the names that LangChain gives them for this chain type (`prompt`,
                `question_prompt`, `combine_prompt`, `collapse_prompt`, `refine_prompt`), and `token_max`.
            return_source_documents: Whether the documents are given back, as `source_documents`.
            **options: `retriever`, `input_key` ("query" by default), `output_key` ("result" by default), callbacks,
                tags, metadata and verbose as LangChain's chains take them, and the options of this class.

        Returns:
            The chain; it takes a plain string too.

        Raises:
            ValidationError: An option is unknown or has a value that it cannot have.
        """
        fields, config = classic_options(chain_type, chain_type_kwargs or {}, options)
        fields = {"input_key": "query", "output_key": "result", **fields}
        fields["documents_key"] = "source_documents" if return_source_documents else None
        chain = cls(llm=llm, **fields)
        return chain.with_config(config) if config else chain  # type: ignore[arg-type]

    @property
    def input_keys(self) -> list[str]:
        """The keys that the input must have."""
        return [self.input_key]

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What of the model and of the retriever a config can set."""
        parts = (self.llm, self._retriever.retriever)
        return get_unique_config_specs(
            spec for part in parts if isinstance(part, Runnable) for spec in part.config_specs
        )

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:  # noqa: ARG002
        """A model of the input. `filter` is left out: an agent must not choose what its tool may search."""
        return create_model(f"{self.get_name()}Input", **{self.input_key: (str, ...), "chat_history": (list[Any], [])})  # type: ignore[call-overload]

    def get_output_schema(self, config: RunnableConfig | None = None) -> Any:  # noqa: ARG002
        """A model of the output."""
        return create_model(f"{self.get_name()}Output", **dict.fromkeys(self.output_keys, (Any, ...)))  # type: ignore[call-overload]

    def invoke(self, input: Inputs, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Answer a question.

        Args:
            input: The question under `input_key`, or the question alone. `chat_history` (messages, or pairs of texts),
                `choices` (the answers to choose from) and `filter` (for every search for this question, as in
                `OrderPreservingRetriever.invoke`) are known. Anything else can be used by prompts and is passed on.
            config: LangChain's config; `max_concurrency` replaces the chain's.
            **kwargs: None are known.

        Returns:
            The inputs, the documents and the answer. The answer is an object where the model gives objects.

        Raises:
            QueryError: There is no question, or it is empty.
            OptionError: The retriever takes no filter, or an input that would be ignored looks like an option (`k`,
                `search_kwargs`) or like one of the inputs above (`filters`).
            ModelError: A call failed, and `on_error="raise"`, or there is no answer without it.
        """
        _refuse(kwargs)
        output: dict[str, Any] = self._call_with_config(as_run(self._invoke), input, config)
        return output

    async def ainvoke(self, input: Inputs, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """As `invoke`, async."""
        _refuse(kwargs)
        output: dict[str, Any] = await self._acall_with_config(as_run(self._ainvoke), input, config)
        return output

    def stream(self, input: Inputs, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[dict[str, Any]]:
        """Answer a question in pieces: the inputs, the documents, then the answer as it is written."""
        return self.transform(iter([input]), config, **kwargs)

    def astream(
        self, input: Inputs, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """As `stream`, async."""
        return self.atransform(once(input), config, **kwargs)

    def transform(
        self, input: Iterator[Inputs], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[dict[str, Any]]:
        """As `stream`, of an input that comes in pieces."""
        _refuse(kwargs)
        yield from self._streamed(input, config)

    async def atransform(
        self, input: AsyncIterator[Inputs], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """As `transform`, async."""
        _refuse(kwargs)
        async with aclosing(self._astreamed(input, config)) as pieces:
            async for piece in pieces:
                yield piece


def _refuse(kwargs: dict[str, Any]) -> None:
    if kwargs:
        hint = "; a filter belongs in the input, beside the question" if "filter" in kwargs else ""
        raise OptionError(
            f"unknown arguments: {', '.join(kwargs)}; a chain takes its options when it is made{hint}", kwargs
        )
