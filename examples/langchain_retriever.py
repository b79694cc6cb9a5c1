"""LangChain retriever: the same documents, in the order of their source.

pip install 'oprag[langchain,local]'
"""

from pydoc_data.topics import topics  # the Python language reference

from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag.langchain import LocalEmbeddings, OrderPreservingRetriever

reference = Document("\n\n".join(topics.values()), metadata={"source": "reference"})
splitter = RecursiveCharacterTextSplitter(chunk_size=600, chunk_overlap=60, add_start_index=True)
store = InMemoryVectorStore.from_documents(splitter.split_documents([reference]), LocalEmbeddings())

before = store.as_retriever(search_kwargs={"k": 8})
after = OrderPreservingRetriever(vectorstore=store, k=8)

question = "What happens when an exception is raised inside a with statement?"
print("before:", [document.metadata["start_index"] for document in before.invoke(question)])
print("after: ", [document.metadata["start_index"] for document in after.invoke(question)])
print(after.get_context(question, k=3).explain())
