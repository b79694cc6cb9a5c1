"""What to write instead of option names of LangChain and LlamaIndex."""

from oprag.options import NAME_HINTS

__all__ = [
    "LANGCHAIN",
    "LANGCHAIN_COMPRESSOR",
    "LANGCHAIN_INDEX_RETRIEVER",
    "LLAMA_INDEX",
    "LLAMA_INDEX_POSTPROCESSOR",
]

# Names of both frameworks for prompts, models and parts that only the class that answers has; `{answers}` is its name.
_ANSWERS = {
    **dict.fromkeys(("model", "chat_model", "language_model", "llm"), "use llm= of {answers}, which answers questions"),
    **dict.fromkeys(("prompt", "text_qa_template"), 'use prompts={{"answer": ...}} of {answers}'),
    **dict.fromkeys(("refine_prompt", "refine_template"), 'use prompts={{"refine": ...}} of {answers}'),
    **dict.fromkeys(("combine_prompt", "summary_template"), 'use prompts={{"reduce": ...}} of {answers}'),
    "question_prompt": 'use prompts={{"map": ...}}, or {{"answer": ...}} with method="refine"',
    "collapse_prompt": 'use prompts={{"collapse": ...}}',
    "condense_question_prompt": 'use prompts={{"condense": ...}}',
    **dict.fromkeys(("condense_question_llm", "question_generator"), "remove it: llm= rewrites a follow-up question"),
    "verbose": "remove it: callbacks and traces show every step",
}

LANGCHAIN = {
    **NAME_HINTS,
    **{name: hint.format(answers="OrderPreservingChain") for name, hint in _ANSWERS.items()},
    "document_separator": "use separator=",
    "document_prompt": "use header= for a line above each passage",
    "document_variable_name": "remove it: in prompts, the documents are {context}",
    **dict.fromkeys(("embedding", "embedding_function", "embedding_model", "embeddings_model"), "use embeddings="),
    "base_retriever": "use retriever=",
    "base_compressor": "use retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)",
    "filter": 'use search_kwargs={"filter": ...} with a vector store, or pass it with the question, as in '
    'invoke(question, filter=...) of a retriever and invoke({"input": ..., "filter": ...}) of a chain',
    "fetch_k": 'use max_candidates=, or search_type="mmr" and search_kwargs={"fetch_k": ...}',
    "lambda_mult": 'use search_type="mmr" and search_kwargs={"lambda_mult": ...}',
    "score_threshold": "use similarity_threshold=, a cosine similarity; or, over a store, "
    'search_type="similarity_score_threshold" and search_kwargs={"score_threshold": ...}',
    "return_source_documents": "remove it: a retriever always returns the documents, and a chain under documents_key= "
    '("context" by default; documents_key="source_documents" matches RetrievalQA, None leaves them out)',
    "chain_type": "use method= of OrderPreservingChain, or OrderPreservingChain.from_chain_type(...)",
    **dict.fromkeys(("chain_type_kwargs", "combine_docs_chain_kwargs"), "use prompts= of OrderPreservingChain"),
    **dict.fromkeys(
        ("combine_docs_chain", "combine_documents_chain", "llm_chain"),
        'use llm= for its model, prompts={"answer": ...} for its prompt, and method= of OrderPreservingChain',
    ),
    **dict.fromkeys(("memory", "get_chat_history"), 'remove it: pass {"input": ..., "chat_history": [...]} to invoke'),
    "token_max": "use collapse_tokens=",
    **dict.fromkeys(("callbacks", "callback_manager", "tags", "metadata"), "use with_config(...)"),
}
LANGCHAIN_COMPRESSOR = {
    **LANGCHAIN,
    **dict.fromkeys(
        ("retriever", "base_retriever", "vectorstore", "search_type", "search_kwargs"),
        "a compressor receives its documents; use OrderPreservingRetriever(retriever=...) or (vectorstore=...)",
    ),
    "base_compressor": "put it before this one: DocumentCompressorPipeline(transformers=[base_compressor, ...])",
}
LANGCHAIN_INDEX_RETRIEVER = {
    **dict.fromkeys(("top_k", "top_n", "n_results", "limit"), "use k="),
    "search_type": 'use search="dense", "bm25" or "hybrid"',
    "search_kwargs": "use k= and search=",
}

LLAMA_INDEX = {
    **NAME_HINTS,
    **{name: hint.format(answers="OrderPreservingQueryEngine") for name, hint in _ANSWERS.items()},
    "embeddings": "use embed_model=",
    "docstore": "use read_neighbors=docstore",
    "num_nodes": "use neighbors=",
    "query_engine": "use retriever=query_engine.retriever",
    "similarity_top_k": "use retriever=index.as_retriever(similarity_top_k=...); k= limits how many nodes are kept",
    "vector_store": "use retriever=VectorStoreIndex.from_vector_store(vector_store).as_retriever()",
    **{
        name: f"use retriever=index.as_retriever({name}=...)"
        for name in ("filters", "node_ids", "doc_ids", "vector_store_query_mode", "alpha")
    },
    "streaming": "use streaming= of OrderPreservingQueryEngine",
    "output_cls": "use llm=llm.as_structured_llm(output_cls) of OrderPreservingQueryEngine",
    **dict.fromkeys(
        ("postprocessors", "node_postprocessors"),
        "use node_postprocessors= of OrderPreservingQueryEngine, which applies them before ordering the nodes",
    ),
    **dict.fromkeys(
        ("response_synthesizer", "response_mode"),
        'use method= of OrderPreservingQueryEngine: "stuff" for compact, "refine" for refine, "map_reduce" for '
        "tree_summarize",
    ),
    **dict.fromkeys(("citation_chunk_size", "citation_qa_template"), "use cite=True of OrderPreservingQueryEngine"),
    "use_async": "remove it: aquery() is async",
}
LLAMA_INDEX_POSTPROCESSOR = {
    **LLAMA_INDEX,
    "similarity_top_k": "use k=, or index.as_retriever(similarity_top_k=...) for the retriever before it",
    "vector_store": "use index=VectorStoreIndex.from_vector_store(vector_store)",
    **dict.fromkeys(
        ("retriever", "query_engine"),
        "a postprocessor receives its nodes; use OrderPreservingRetriever(retriever=...)",
    ),
}
