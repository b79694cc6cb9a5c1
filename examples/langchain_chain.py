"""LangChain chain: OrderPreservingChain in place of create_retrieval_chain, with the same prompt and keys.

pip install 'oprag[langchain,local]' langchain-classic
"""

from pydoc_data.topics import topics  # the Python language reference

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag.langchain import LocalEmbeddings, OrderPreservingChain

splitter = RecursiveCharacterTextSplitter(chunk_size=400, chunk_overlap=0, add_start_index=True)
chunks = splitter.create_documents([topics["try"]], [{"source": "try"}])
retriever = InMemoryVectorStore.from_documents(chunks, LocalEmbeddings()).as_retriever(search_kwargs={"k": 8})
prompt = ChatPromptTemplate.from_template("Answer from this text:\n\n{context}\n\n{input}")
llm = FakeListChatModel(responses=["The search continues in the surrounding code."])  # your model here

before = create_retrieval_chain(retriever, create_stuff_documents_chain(llm, prompt))
after = OrderPreservingChain(llm=llm, retriever=retriever, prompts={"answer": prompt})

for name, chain in (("before:", before), ("after: ", after)):
    result = chain.invoke({"input": "What happens when no except clause matches the exception?"})
    print(name, sorted(result), [document.metadata["start_index"] for document in result["context"]])
