"""What users of the frameworks' own classes write by habit: every constructor says what to write instead."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from pydantic import ValidationError

from oprag import DocumentIndex, langchain, llama_index
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever, numbered
from tests.helpers import WordEmbedder, word_offsets

STORE = store_of(parts(3))
RETRIEVER = STORE.as_retriever()
CHAT_MODEL = FakeListChatModel(responses=["An answer."])
DOCUMENT_INDEX = DocumentIndex.from_texts({"a.txt": "one two three"}, WordEmbedder(), word_offsets, chunk_size=2)

LLAMA_INDEX_LLM = MockLLM()
EMBED_MODEL = HashedWords()
VECTOR_INDEX = VectorStoreIndex([scored.node for scored in numbered([1, 0])], embed_model=EMBED_MODEL)
LIST_RETRIEVER = ListRetriever(numbered([1, 0]))

REQUIRED: dict[type[Any], dict[str, Any]] = {
    langchain.OrderPreservingRetriever: {"vectorstore": STORE},
    langchain.OrderPreservingCompressor: {},
    langchain.OrderPreservingChain: {"llm": CHAT_MODEL, "retriever": STORE},
    langchain.DocumentIndexRetriever: {"index": DOCUMENT_INDEX},
    llama_index.OrderPreservingPostprocessor: {},
    llama_index.OrderPreservingRetriever: {"retriever": LIST_RETRIEVER},
    llama_index.OrderPreservingQueryEngine: {"llm": LLAMA_INDEX_LLM, "retriever": LIST_RETRIEVER},
    llama_index.StampPositions: {},
}
INSTEAD: dict[type[Any], dict[str, str]] = {
    langchain.OrderPreservingRetriever: {
        "document_separator": "use separator=",
        "document_prompt": "use header=",
        "return_source_documents": "a retriever always returns the documents",
        "chain_type": "OrderPreservingChain",
        "llm": "OrderPreservingChain",
        "base_retriever": "use retriever=",
        "base_compressor": "retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)",
        "embedding": "use embeddings=",
        "filter": 'search_kwargs={"filter": ...}',
        "lambda_mult": 'search_kwargs={"lambda_mult": ...}',
        "top_k": "use k=",
        "max_tokens_limit": "use token_budget=",
        "score_threshold": 'search_kwargs={"score_threshold": ...}',
    },
    langchain.OrderPreservingCompressor: {
        "top_n": "use k=",
        "base_retriever": "OrderPreservingRetriever(retriever=...)",
        "vectorstore": "OrderPreservingRetriever(retriever=...) or (vectorstore=...)",
        "score_threshold": "use similarity_threshold=, a cosine similarity",
        "base_compressor": "DocumentCompressorPipeline(transformers=[base_compressor, ...])",
    },
    langchain.OrderPreservingChain: {
        "document_separator": "use separator=",
        "document_variable_name": "{context}",
        "return_source_documents": 'documents_key="source_documents"',
        "filter": 'invoke({"input": ..., "filter": ...})',
        "base_compressor": "retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)",
        "score_threshold": 'search_kwargs={"score_threshold": ...}',
        "chain_type": "use method= of OrderPreservingChain, or OrderPreservingChain.from_chain_type(...)",
        "chain_type_kwargs": "use prompts=",
        "combine_docs_chain": 'use llm= for its model, prompts={"answer": ...} for its prompt',
        "prompt": 'use prompts={"answer": ...}',
        "combine_prompt": 'use prompts={"reduce": ...}',
        "condense_question_prompt": 'use prompts={"condense": ...}',
        "condense_question_llm": "llm= rewrites a follow-up question",
        "combine_docs_chain_kwargs": "use prompts=",
        "vector_store": "did you mean 'vectorstore'",
        "model": "use llm=",
        "memory": '"chat_history"',
        "callbacks": "use with_config(...)",
        "token_max": "use collapse_tokens=",
    },
    langchain.DocumentIndexRetriever: {
        "serch": "did you mean 'search'",
        "zzz": "k, search",
        "top_k": "use k=",
        "search_type": 'use search="dense", "bm25" or "hybrid"',
    },
    llama_index.OrderPreservingPostprocessor: {
        "top_n": "use k=",
        "similarity_top_k": "use k=",
        "similarity_cutoff": "use similarity_threshold=",
        "docstore": "use read_neighbors=docstore",
        "num_nodes": "use neighbors=",
        "retriever": "OrderPreservingRetriever(retriever=...)",
        "query_engine": "OrderPreservingRetriever(retriever=...)",
        "embeddings": "use embed_model=",
    },
    llama_index.OrderPreservingRetriever: {
        "similarity_top_k": "use retriever=index.as_retriever(similarity_top_k=...)",
        "node_postprocessors": "OrderPreservingQueryEngine",
        "query_engine": "use retriever=query_engine.retriever",
        "doc_ids": "use retriever=index.as_retriever(doc_ids=...)",
        "llm": "OrderPreservingQueryEngine",
        "text_qa_template": "OrderPreservingQueryEngine",
        "similarity_cutoff": "use similarity_threshold=, a cosine similarity",
    },
    llama_index.OrderPreservingQueryEngine: {
        "output_cls": "use llm=llm.as_structured_llm(output_cls)",
        "text_qa_template": 'use prompts={"answer": ...}',
        "refine_template": 'use prompts={"refine": ...}',
        "summary_template": 'use prompts={"reduce": ...}',
        "response_synthesizer": "use method=",
        "response_mode": '"map_reduce" for tree_summarize',
        "similarity_top_k": "use retriever=index.as_retriever(similarity_top_k=...)",
        "filters": "use retriever=index.as_retriever(filters=...)",
        "vector_store": "use retriever=VectorStoreIndex.from_vector_store(vector_store).as_retriever()",
        "embeddings": "use embed_model=",
        "use_async": "aquery()",
        "query_engine": "use retriever=query_engine.retriever",
        "citation_chunk_size": "use cite=True",
        "model": "use llm=",
    },
    llama_index.StampPositions: {
        "sources": "did you mean 'source'",
    },
}


@pytest.mark.parametrize(
    ("cls", "name", "instead"), [(cls, *pair) for cls, names in INSTEAD.items() for pair in names.items()]
)
def test_options_of_other_classes_are_told_what_to_write_here(cls: type[Any], name: str, instead: str):
    with pytest.raises(ValidationError, match=f"unknown option '{name}'; .*{re.escape(instead)}"):
        cls(**REQUIRED[cls] | {name: "x"})


def test_from_chain_type_tells_too():
    with pytest.raises(ValidationError, match="unknown option 'combine_prompt'; use prompts="):
        langchain.OrderPreservingChain.from_chain_type(CHAT_MODEL, retriever=STORE, combine_prompt="x")


def test_from_args_takes_the_arguments_and_tells_the_options():
    engine = llama_index.OrderPreservingQueryEngine
    cutoff = SimilarityPostprocessor()
    made = engine.from_args(LIST_RETRIEVER, LLAMA_INDEX_LLM, node_postprocessors=[cutoff], streaming=True, k=3)
    assert (made.retriever, made.llm, list(made.node_postprocessors)) == (LIST_RETRIEVER, LLAMA_INDEX_LLM, [cutoff])
    assert (made.streaming, made.k) == (True, 3)
    with pytest.raises(ValidationError, match="unknown option 'response_mode'; use method= of"):
        engine.from_args(LIST_RETRIEVER, llm=LLAMA_INDEX_LLM, response_mode="refine")


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (
            langchain.OrderPreservingRetriever,
            {"retriever": DOCUMENT_INDEX},
            "vector store, got DocumentIndex; pass DocumentIndexRetriever(index=...)",
        ),
        (
            langchain.OrderPreservingChain,
            {"llm": "gpt-x", "retriever": STORE},
            'llm must be a LangChain model, got str; pass init_chat_model("...")',
        ),
        (
            langchain.OrderPreservingChain,
            {"llm": RETRIEVER, "retriever": CHAT_MODEL},
            "llm must be a LangChain model, got ",
        ),
        (
            llama_index.OrderPreservingQueryEngine,
            {"llm": LLAMA_INDEX_LLM, "retriever": VECTOR_INDEX},
            "retriever must be a LlamaIndex BaseRetriever, got VectorStoreIndex",
        ),
        (
            llama_index.OrderPreservingQueryEngine,
            {"llm": "gpt-x", "retriever": LIST_RETRIEVER},
            'llm must be a LlamaIndex LLM, got str; pass a model, such as OpenAI(model="...")',
        ),
        (llama_index.OrderPreservingRetriever, {"index": VECTOR_INDEX}, "Field required"),
    ],
)
def test_an_object_in_the_place_of_another_is_refused(cls: type[Any], options: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=re.escape(message)):
        cls(**options)


@pytest.mark.parametrize(
    "cls",
    [
        langchain.OrderPreservingCompressor,
        langchain.OrderPreservingRetriever,
        llama_index.OrderPreservingQueryEngine,
        llama_index.OrderPreservingPostprocessor,
        llama_index.StampPositions,
    ],
)
def test_positional_arguments_are_refused(cls: type[Any]):
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        cls(STORE)
