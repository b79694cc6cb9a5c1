"""What to write instead of option names of LangChain and LlamaIndex."""

from oprag.options import NAME_HINTS

__all__ = [
    "LANGCHAIN_CHAIN",
    "LANGCHAIN_COMPRESSOR",
    "LANGCHAIN_INDEX_RETRIEVER",
    "LANGCHAIN_RETRIEVER",
    "LLAMA_INDEX_ENGINE",
    "LLAMA_INDEX_POSTPROCESSOR",
    "LLAMA_INDEX_RETRIEVER",
]

# LangChain

_LANGCHAIN = {
    **NAME_HINTS,
    "document_separator": "use separator=",
    "document_prompt": "use header= for a line above each passage",
    **dict.fromkeys(("embedding", "embedding_function", "embedding_model", "embeddings_model"), "use embeddings="),
    **dict.fromkeys(
        ("llm", "model", "prompt", "chain_type", "combine_docs_chain", "document_variable_name"),
        "pass it to OrderPreservingChain, which answers questions",
    ),
}
_LANGCHAIN_SEARCH = {
    "base_retriever": "use retriever=",
    "base_compressor": "use retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)",
    "filter": 'use search_kwargs={"filter": ...} with a vector store, or pass it with the question, as in '
    'invoke(question, filter=...) of a retriever and invoke({"input": ..., "filter": ...}) of a chain',
    "fetch_k": 'use max_candidates=, or search_type="mmr" and search_kwargs={"fetch_k": ...}',
    "lambda_mult": 'use search_type="mmr" and search_kwargs={"lambda_mult": ...}',
    "score_threshold": "use similarity_threshold=, a cosine similarity; or "
    'search_type="similarity_score_threshold" and search_kwargs={"score_threshold": ...}',
}
LANGCHAIN_COMPRESSOR = {
    **_LANGCHAIN,
    **dict.fromkeys(
        ("retriever", "base_retriever", "vectorstore", "search_type", "search_kwargs"),
        "a compressor receives its documents; use OrderPreservingRetriever(retriever=...) or (vectorstore=...)",
    ),
    "base_compressor": "put it before this one: DocumentCompressorPipeline(transformers=[base_compressor, ...])",
}
LANGCHAIN_RETRIEVER = {
    **_LANGCHAIN,
    **_LANGCHAIN_SEARCH,
    "return_source_documents": "remove it: a retriever always returns the documents",
}
LANGCHAIN_CHAIN = {
    **_LANGCHAIN,
    **_LANGCHAIN_SEARCH,
    **dict.fromkeys(("model", "chat_model", "language_model"), "use llm="),
    **dict.fromkeys(
        ("combine_docs_chain", "combine_documents_chain", "llm_chain"),
        'use llm= for its model, prompts={"answer": ...} for its prompt, and method= for combining documents',
    ),
    "document_variable_name": "remove it: in prompts, the documents are {context}",
    "return_source_documents": "the documents are always returned, under documents_key= "
    '("context" by default; documents_key="source_documents" matches RetrievalQA, None leaves them out)',
    "chain_type": "use method=, or OrderPreservingChain.from_chain_type(...)",
    "chain_type_kwargs": "use prompts=, or OrderPreservingChain.from_chain_type(...)",
    "prompt": 'use prompts={"answer": prompt}',
    "refine_prompt": 'use prompts={"refine": refine_prompt}',
    "question_prompt": 'use prompts={"map": question_prompt}, or {"answer": question_prompt} with method="refine"',
    "combine_prompt": 'use prompts={"reduce": combine_prompt}',
    "collapse_prompt": 'use prompts={"collapse": collapse_prompt}',
    "condense_question_prompt": 'use prompts={"condense": condense_question_prompt}',
    **dict.fromkeys(("condense_question_llm", "question_generator"), "remove it: llm= rewrites a follow-up question"),
    "combine_docs_chain_kwargs": "use prompts=",
    **dict.fromkeys(("memory", "get_chat_history"), 'remove it: pass {"input": ..., "chat_history": [...]} to invoke'),
    "token_max": "use collapse_tokens=",
    **dict.fromkeys(("callbacks", "callback_manager", "tags", "metadata"), "use chain.with_config(...)"),
    "verbose": "remove it: callbacks and traces show every step",
}
LANGCHAIN_INDEX_RETRIEVER = {
    **dict.fromkeys(("top_k", "top_n", "n_results", "limit"), "use k="),
    "search_type": 'use search="dense", "bm25" or "hybrid"',
    "search_kwargs": "use k= and search=",
}

# LlamaIndex

_LLAMA_INDEX = {
    **NAME_HINTS,
    "embeddings": "use embed_model=",
    "docstore": "use read_neighbors=docstore",
    "num_nodes": "use neighbors=",
    "query_engine": "use retriever=query_engine.retriever",
    "vector_store": "use index=VectorStoreIndex.from_vector_store(vector_store)",
    **dict.fromkeys(
        ("llm", "streaming", "text_qa_template", "response_mode", "response_synthesizer", "output_cls"),
        "pass it to OrderPreservingQueryEngine, which answers queries",
    ),
}
_LLAMA_INDEX_SEARCH = {
    "similarity_top_k": "use retriever=index.as_retriever(similarity_top_k=...); k= limits how many nodes are kept",
    "vector_store": "use retriever=VectorStoreIndex.from_vector_store(vector_store).as_retriever()",
    **{
        name: f"use retriever=index.as_retriever({name}=...)"
        for name in ("filters", "node_ids", "doc_ids", "vector_store_query_mode", "alpha")
    },
}
LLAMA_INDEX_POSTPROCESSOR = {
    **_LLAMA_INDEX,
    "similarity_top_k": "use k=, or index.as_retriever(similarity_top_k=...) for the retriever before it",
    **dict.fromkeys(
        ("retriever", "query_engine"),
        "a postprocessor receives its nodes; use OrderPreservingRetriever(retriever=...)",
    ),
}
LLAMA_INDEX_RETRIEVER = {
    **_LLAMA_INDEX,
    **_LLAMA_INDEX_SEARCH,
    "node_postprocessors": "pass them to OrderPreservingQueryEngine, which applies them before ordering the nodes",
}
LLAMA_INDEX_ENGINE = {
    **_LLAMA_INDEX,
    **_LLAMA_INDEX_SEARCH,
    "model": "use llm=",
    "output_cls": "use llm=llm.as_structured_llm(output_cls)",
    "postprocessors": "use node_postprocessors=",
    "response_synthesizer": 'use method= (such as method="refine") and prompts=; the engine needs no synthesizer',
    "response_mode": 'use method=: "stuff" for compact, "refine" for refine, "map_reduce" for tree_summarize',
    "text_qa_template": 'use prompts={"answer": text_qa_template}',
    "refine_template": 'use prompts={"refine": refine_template}',
    "summary_template": 'use prompts={"reduce": summary_template}',
    **dict.fromkeys(("citation_chunk_size", "citation_qa_template"), "use cite=True"),
    "use_async": "remove it: aquery() is async",
    "verbose": "remove it: callbacks and instrumentation show every step",
}
