"""The nodes of a LlamaIndex query engine, in the order of their source.

pip install 'oprag[llama-index,local]'
"""

from pydoc_data.topics import topics
from typing import Any

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from parts.for_llama_index import LocalEmbedding

from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever, StampPositions

QUESTION = "What happens when an exception is raised inside a with statement?"


def main() -> None:
    """Ask once without and once with our postprocessor."""
    reference = Document(text="\n\n".join(topics.values()), metadata={"file_name": "python-reference"})
    index = VectorStoreIndex.from_documents(
        [reference],
        transformations=[SentenceSplitter(chunk_size=160, chunk_overlap=20), StampPositions()],
        embed_model=LocalEmbedding(),
    )

    settings: dict[str, Any] = {"llm": MockLLM(), "similarity_top_k": 8}
    rank_order = index.as_query_engine(**settings)
    source_ranking = index.as_query_engine(**settings, node_postprocessors=[OrderPreservingPostprocessor()])

    for name, engine in (("rank order", rank_order), ("source order", source_ranking)):
        numbers = [scored.metadata["chunk_index"] for scored in engine.query(QUESTION).source_nodes]
        print(f"{name:>12}: chunks {', '.join(map(str, numbers))}")

    context = OrderPreservingRetriever(retriever=index.as_retriever(similarity_top_k=3)).get_context(QUESTION)
    print(f"\n{context.explain()}")


if __name__ == "__main__":
    main()
