"""The swap in code that was written for LlamaIndex's `RetrieverQueryEngine`, which `index.as_query_engine()` makes too.

pip install 'oprag[llama-index,local]'
"""

from llama_index.core.query_engine import RetrieverQueryEngine
from parts.for_llama_index import Reading, StandIn, reference_index

from oprag.llama_index import OrderPreservingQueryEngine

QUESTION = "What happens when an exception is raised inside a with statement?"


def main() -> None:
    """Ask LlamaIndex's engine, then ours."""
    model, index = StandIn(), reference_index()  # put your own model here: this one copies a sentence
    retriever = index.as_retriever(similarity_top_k=8)

    before = RetrieverQueryEngine.from_args(llm=model, retriever=retriever)
    after = OrderPreservingQueryEngine(llm=model, retriever=retriever)

    for name, engine in (("before", before), ("after", after)):
        reading = Reading(model)
        response = engine.query(QUESTION)
        print(f"{name}: keys {', '.join(sorted(vars(response)))}")
        print(f"{name}: the model read the chunks {', '.join(map(str, reading.chunks(response.source_nodes)))}")
        print(f"{name}: answer {response}\n")


if __name__ == "__main__":
    main()
