"""The swap in code that was written for LangChain's `RetrievalQA`: the name of the class.

pip install 'oprag[langchain,local]' langchain-classic
"""

from langchain_classic.chains import RetrievalQA
from parts.for_langchain import Reading, reference_store
from parts.langchain_model import chat_model

from oprag.langchain import OrderPreservingChain

QUESTION = "What happens when an exception is raised inside a with statement?"


def main() -> None:
    """Ask LangChain's chain, then ours."""
    model, store = chat_model(), reference_store()
    retriever = store.as_retriever(search_kwargs={"k": 8})

    before = RetrievalQA.from_chain_type(model, chain_type="stuff", retriever=retriever, return_source_documents=True)
    after = OrderPreservingChain.from_chain_type(
        model, chain_type="stuff", retriever=retriever, return_source_documents=True
    )

    for name, chain in (("before", before), ("after", after)):
        reading = Reading()
        result = chain.invoke({"query": QUESTION}, config={"callbacks": [reading]})
        print(f"{name}: keys {', '.join(sorted(result))}")
        print(f"{name}: the model read the chunks {', '.join(map(str, reading.chunks))}")
        print(f"{name}: answer {result['result']}\n")


if __name__ == "__main__":
    main()
