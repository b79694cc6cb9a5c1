"""Hints for option names that users of LangChain may try, and for objects passed as positional arguments."""

from oprag.options import NAME_HINTS

__all__ = ["CHAIN", "COMPRESSOR", "HOW_TO_PASS", "INDEX_RETRIEVER", "RETRIEVER"]

HOW_TO_PASS = {
    "langchain_core.VectorStore": ("vectorstore=store", "retriever=store"),
    "langchain_core.BaseRetriever": ("retriever=retriever",),
    "langchain_core.BaseLanguageModel": ("llm=llm",),
    "langchain_core.Embeddings": ("embeddings=embeddings",),
    "oprag.DocumentIndex": ("index=index", "retriever=DocumentIndexRetriever(index=index)", "read_neighbors=index"),
}

_RENDERING = {
    "document_separator": "use separator=",
    "document_prompt": "use header= for a line above each passage",
}
_VECTORS = dict.fromkeys(("embedding", "embedding_function", "embedding_model", "embeddings_model"), "use embeddings=")
_ANSWERING = dict.fromkeys(
    ("llm", "model", "prompt", "chain_type", "combine_docs_chain", "document_variable_name"),
    "pass it to OrderPreservingChain, which answers questions",
)
_SHARED = {**NAME_HINTS, **_RENDERING, **_VECTORS}

_SEARCHING = {
    "base_retriever": "use retriever=",
    "base_compressor": "use retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)",
    **dict.fromkeys(("retrievers", "weights"), "use retriever=EnsembleRetriever(retrievers=..., weights=...)"),
    **dict.fromkeys(
        ("docstore", "child_splitter", "parent_splitter"),
        "use retriever=ParentDocumentRetriever(vectorstore=..., docstore=..., child_splitter=...)",
    ),
    "fetch_k": 'use max_candidates=, or search_type="mmr" and search_kwargs={"fetch_k": ...}',
    "lambda_mult": 'use search_type="mmr" and search_kwargs={"lambda_mult": ...}',
    "score_threshold": (
        "use similarity_threshold=, a cosine similarity; or "
        'search_type="similarity_score_threshold" and search_kwargs={"score_threshold": ...}'
    ),
}

COMPRESSOR = {
    **_SHARED,
    **_ANSWERING,
    **dict.fromkeys(
        ("retriever", "base_retriever", "vectorstore", "search_type", "search_kwargs"),
        "a compressor receives its documents; use OrderPreservingRetriever(retriever=...) or (vectorstore=...)",
    ),
    "base_compressor": "put it before this one: DocumentCompressorPipeline(transformers=[base_compressor, ...])",
}

RETRIEVER = {
    **_SHARED,
    **_ANSWERING,
    **_SEARCHING,
    "filter": 'use search_kwargs={"filter": ...} with a vector store, or invoke(question, filter=...)',
    "return_source_documents": "remove it: a retriever always returns the documents",
    "response_format": "remove it: the artifact of a search tool is always the list of documents",
}

CHAIN = {
    **_SHARED,
    **dict.fromkeys(("model", "chat_model", "language_model"), "use llm="),
    **_SEARCHING,
    "filter": 'use search_kwargs={"filter": ...} with a vector store, or invoke({"input": ..., "filter": ...})',
    **dict.fromkeys(
        ("combine_docs_chain", "combine_documents_chain", "llm_chain"),
        'use llm= for its model, prompts={"answer": ...} for its prompt, and method= for combining documents',
    ),
    "document_variable_name": "remove it: in prompts, the documents are {context}",
    "return_source_documents": (
        "the documents are always returned, under documents_key= "
        '("context" by default; documents_key="source_documents" matches RetrievalQA, None leaves them out)'
    ),
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

INDEX_RETRIEVER = {
    **dict.fromkeys(("top_k", "top_n", "n_results", "limit"), "use k="),
    "search_type": 'use search="dense", "bm25" or "hybrid"',
    "search_kwargs": "use k= and search=",
}
