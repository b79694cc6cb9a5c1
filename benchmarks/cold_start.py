"""One question about one long document, in a new process that `benchmarks.cold` starts.

All three ways use the same embedder and chunk size.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

__all__ = ["WAYS"]

K, SIZE = 128, 128

Step = Callable[[str], None]


def with_oprag(text: str, question: str, done: Step) -> str:
    """Split, embed and search with `DocumentIndex`."""
    from oprag import DocumentIndex, LocalEmbedder, build_context

    done("import")
    embedder = LocalEmbedder()
    tokenizer = embedder.tokenizer
    done("load")
    index = DocumentIndex.from_texts({"document": text}, embedder, tokenizer, chunk_size=SIZE)
    done("index")
    context = build_context(index.search(question, K))
    done("answer")
    return context.text


def with_langchain(text: str, question: str, done: Step) -> str:
    """LangChain's splitter and store, in rank order."""
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from benchmarks.langchain_embeddings import LocalEmbeddings
    from oprag import LocalEmbedder

    done("import")
    embedder = LocalEmbedder()
    tokenizer = embedder.tokenizer
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=SIZE,
        chunk_overlap=0,
        length_function=lambda piece: len(tokenizer.encode(piece, add_special_tokens=False)),
        add_start_index=True,
    )
    done("load")
    store = InMemoryVectorStore(LocalEmbeddings(embedder))
    store.add_documents(splitter.create_documents([text], [{"source": "document"}]))
    done("index")
    documents = store.as_retriever(search_kwargs={"k": K}).invoke(question)
    done("answer")
    return "\n\n".join(document.page_content for document in documents)


def with_llama_index(text: str, question: str, done: Step) -> str:
    """LlamaIndex's splitter and store, in rank order.

    Without `VectorStoreIndex`, which takes quadratic time for the nodes of one document.
    """
    from llama_index.core.node_parser import SentenceSplitter
    from llama_index.core.schema import Document
    from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery

    from benchmarks.llama_index_embedding import LocalEmbedding
    from oprag import LocalEmbedder

    done("import")
    embedder = LocalEmbedder()
    tokenizer = embedder.tokenizer
    splitter = SentenceSplitter(
        chunk_size=SIZE, chunk_overlap=0, tokenizer=lambda piece: tokenizer.encode(piece, add_special_tokens=False).ids
    )
    done("load")
    embedding = LocalEmbedding(embedder)
    nodes = embedding(splitter.get_nodes_from_documents([Document(text=text)]))
    store = SimpleVectorStore()
    store.add(nodes)
    done("index")
    query = VectorStoreQuery(query_embedding=embedding.get_query_embedding(question), similarity_top_k=K)
    by_id = {node.node_id: node for node in nodes}
    found = [by_id[name] for name in store.query(query).ids or []]
    done("answer")
    return "\n\n".join(node.get_content() for node in found)


WAYS = {"oprag": with_oprag, "LangChain": with_langchain, "LlamaIndex": with_llama_index}


def main() -> None:
    """Print the seconds of each step and the size of the context as JSON."""
    way, path, question = sys.argv[1:]
    seconds: dict[str, float] = {}
    last = perf_counter()

    def done(step: str) -> None:
        nonlocal last
        now = perf_counter()
        seconds[step], last = now - last, now

    context = WAYS[way](Path(path).read_text(encoding="utf-8"), question, done)
    print(json.dumps({"seconds": seconds, "characters": len(context)}))


if __name__ == "__main__":
    main()
