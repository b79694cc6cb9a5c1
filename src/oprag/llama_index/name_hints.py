"""Hints for option names that users of LlamaIndex may try, and for objects passed as positional arguments."""

from oprag.options import NAME_HINTS

__all__ = ["ENGINE", "HOW_TO_PASS", "POSTPROCESSOR", "RETRIEVER"]

HOW_TO_PASS = {
    "llama_index.BaseIndex": ("retriever=index.as_retriever()", "index=index"),
    "llama_index.BasePydanticVectorStore": (
        "retriever=VectorStoreIndex.from_vector_store(store).as_retriever()",
        "index=VectorStoreIndex.from_vector_store(store)",
    ),
    "llama_index.BaseRetriever": ("retriever=retriever",),
    "llama_index.BaseQueryEngine": ("retriever=query_engine.retriever",),
    "llama_index.LLM": ("llm=llm",),
    "llama_index.BaseEmbedding": ("embed_model=embed_model",),
    "llama_index.BaseNodePostprocessor": ("node_postprocessors=[postprocessor]",),
}

_SHARED = {
    **NAME_HINTS,
    "embeddings": "use embed_model=",
    "docstore": "use read_neighbors=docstore",
    "num_nodes": "use neighbors=",
    "query_engine": "use retriever=query_engine.retriever",
    "vector_store": "use index=VectorStoreIndex.from_vector_store(vector_store)",
}
_ANSWERING = dict.fromkeys(
    ("llm", "streaming", "text_qa_template", "response_mode", "response_synthesizer", "output_cls"),
    "pass it to OrderPreservingQueryEngine, which answers queries",
)
_RETRIEVING = {
    "similarity_top_k": "use retriever=index.as_retriever(similarity_top_k=...); k= limits how many nodes are kept",
    "vector_store": "use retriever=VectorStoreIndex.from_vector_store(vector_store).as_retriever()",
    **{
        name: f"use retriever=index.as_retriever({name}=...)"
        for name in (
            "filters",
            "node_ids",
            "doc_ids",
            "vector_store_query_mode",
            "alpha",
            "sparse_top_k",
            "hybrid_top_k",
        )
    },
}

POSTPROCESSOR = {
    **_SHARED,
    **_ANSWERING,
    "similarity_top_k": "use k=, or index.as_retriever(similarity_top_k=...) for the retriever before it",
    **dict.fromkeys(
        ("retriever", "query_engine"),
        "a postprocessor receives its nodes; use OrderPreservingRetriever(retriever=...)",
    ),
}

RETRIEVER = {
    **_SHARED,
    **_ANSWERING,
    **_RETRIEVING,
    "node_postprocessors": "pass them to OrderPreservingQueryEngine, which applies them before ordering the nodes",
}

ENGINE = {
    **_SHARED,
    **_RETRIEVING,
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
