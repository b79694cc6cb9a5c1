"""The swap in code that was written for LangChain's `ConversationalRetrievalChain`.

pip install 'oprag[langchain,local]' langchain-classic
"""

from langchain_classic.chains import ConversationalRetrievalChain
from parts.for_langchain import Reading, reference_store
from parts.langchain_model import chat_model

from oprag.langchain import OrderPreservingChain

HISTORY = [("What does a with statement do?", "It runs a block between two methods of a context manager.")]
QUESTION = "What happens when an exception is raised inside of it?"


def main() -> None:
    """Ask LangChain's chain, then ours, both with the same conversation."""
    model, store = chat_model(), reference_store()
    retriever = store.as_retriever(search_kwargs={"k": 8})

    before = ConversationalRetrievalChain.from_llm(model, retriever, return_source_documents=True)
    after = OrderPreservingChain(llm=model, retriever=retriever, input_key="question", documents_key="source_documents")

    for name, chain in (("before", before), ("after", after)):
        reading = Reading()
        result = chain.invoke({"question": QUESTION, "chat_history": HISTORY}, config={"callbacks": [reading]})
        print(f"{name}: keys {', '.join(sorted(result))}")
        print(f"{name}: the model read the chunks {', '.join(map(str, reading.chunks))}")
        print(f"{name}: answer {result['answer']}\n")


if __name__ == "__main__":
    main()
