"""The swap in code that was written for LangChain's `create_retrieval_chain`.

pip install 'oprag[langchain,local]' langchain-classic
"""

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.prompts import ChatPromptTemplate
from parts.for_langchain import Reading, reference_store
from parts.langchain_model import chat_model

from oprag.langchain import OrderPreservingChain

QUESTION = "What happens when an exception is raised inside a with statement?"
PROMPT = ChatPromptTemplate.from_messages([("system", "Answer from this text:\n\n{context}"), ("human", "{input}")])


def main() -> None:
    """Ask LangChain's chain, then ours."""
    model, store = chat_model(), reference_store()
    retriever = store.as_retriever(search_kwargs={"k": 8})

    before = create_retrieval_chain(retriever, create_stuff_documents_chain(model, PROMPT))
    after = OrderPreservingChain(llm=model, retriever=retriever, prompts={"answer": PROMPT})

    for name, chain in (("before", before), ("after", after)):
        reading = Reading()
        result = chain.invoke({"input": QUESTION}, config={"callbacks": [reading]})
        print(f"{name}: keys {', '.join(sorted(result))}")
        print(f"{name}: the model read the chunks {', '.join(map(str, reading.chunks))}")
        print(f"{name}: answer {result['answer']}\n")


if __name__ == "__main__":
    main()
