"""LangChain agent: each passage is shown once, numbered, in the order of its source; a repeat is a pointer.

pip install 'oprag[langchain,local]'
"""

from pydoc_data.topics import topics  # the Python language reference

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from oprag.langchain import LocalEmbeddings, OrderPreservingMiddleware, create_search_tool, working_context_of

splitter = RecursiveCharacterTextSplitter(chunk_size=300, chunk_overlap=0, add_start_index=True)
chunks = splitter.create_documents([topics["with"]], [{"source": "with"}])
store = InMemoryVectorStore.from_documents(chunks, LocalEmbeddings())


class Scripted(FakeMessagesListChatModel):
    def bind_tools(self, *_, **__):
        return self


queries = ["Which method is called when an exception is raised?", "Can an exception be suppressed?"]
calls = [AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": query}]) for query in queries]
model = Scripted(responses=[*calls, AIMessage("A true return value suppresses the exception [3].")])  # your model here
agent = create_agent(model, [create_search_tool(store, k=3)], middleware=[OrderPreservingMiddleware()])
result = agent.invoke({"messages": [{"role": "user", "content": queries[0]}]})
texts = [message.text for message in result["messages"][1:] if message.text]
(citation,) = working_context_of(result).cited(texts[-1]).citations
print(*texts, citation.passage.text, sep="\n---\n")
