"""Deep Agent: one file for each source, with its passages in order; each search adds to it, and numbers stay.

pip install 'oprag[langchain,local]' 'deepagents>=0.7'
"""

from pydoc_data.topics import topics  # the Python language reference

from deepagents import create_deep_agent
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
calls = [*(("search", {"query": query}) for query in queries), ("read_file", {"file_path": "/sources/with.md"})]
steps = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(args)}]) for name, args in calls]
model = Scripted(responses=[*steps, AIMessage("A true return value suppresses the exception [3].")])  # your model here
agent = create_deep_agent(model, [create_search_tool(store, k=3)], middleware=[OrderPreservingMiddleware(files=True)])
result = agent.invoke({"messages": [{"role": "user", "content": queries[0]}]})
texts = [message.text for message in result["messages"][1:] if message.text]
print(*texts, working_context_of(result).cited(texts[-1]).citations[0].passage.text, sep="\n---\n")
