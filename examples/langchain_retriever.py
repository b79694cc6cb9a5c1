"""The documents of a LangChain vector store, in the order of their source.

pip install 'oprag[langchain,local]'
"""

from pydoc_data.topics import topics

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from parts.for_langchain import LocalEmbeddings

from oprag.langchain import OrderPreservingRetriever, stamp_positions

QUESTION = "What happens when an exception is raised inside a with statement?"


def main() -> None:
    """Ask once with the store's own retriever and once with ours."""
    reference = Document("\n\n".join(topics.values()), metadata={"source": "python-reference"})
    splitter = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=60, add_start_index=True)
    chunks = stamp_positions(splitter.split_documents([reference]))

    store = InMemoryVectorStore.from_documents(chunks, LocalEmbeddings())
    rank_order = store.as_retriever(search_kwargs={"k": 8})
    source_ranking = OrderPreservingRetriever(vectorstore=store, k=8)

    for name, retriever in (("rank order", rank_order), ("source order", source_ranking)):
        numbers = [document.metadata["chunk_index"] for document in retriever.invoke(QUESTION)]
        print(f"{name:>12}: chunks {', '.join(map(str, numbers))}")

    context = source_ranking.get_context(QUESTION, k=3)
    print(f"\n{context.explain()}")


if __name__ == "__main__":
    main()
