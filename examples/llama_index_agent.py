"""LlamaIndex agent: each passage is shown once, numbered, in the order of its source; a repeat is a pointer.

pip install 'oprag[llama-index,local]'
"""

import asyncio
from pydoc_data.topics import topics  # the Python language reference

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.workflow import Context

from oprag.llama_index import LocalEmbedding, create_search_tool, working_context_of

queries = ["Which method is called when an exception is raised?", "Can an exception be suppressed?"]
searches = ([ToolCallBlock(tool_name="search", tool_kwargs={"query": query})] for query in queries)
turns = iter([*searches, "A true return value suppresses the exception [3]."])
model = MockFunctionCallingLLM(response_generator=lambda *_, **__: ChatMessage(next(turns), role="assistant"))

nodes = SentenceSplitter(chunk_size=100, chunk_overlap=0)([Document(text=topics["with"], metadata={"source": "with"})])
index = VectorStoreIndex(nodes, embed_model=LocalEmbedding())
agent = FunctionAgent(llm=model, tools=[create_search_tool(index, k=3)])  # your model here


async def main():
    ctx = Context(agent)
    output = await agent.run(queries[0], ctx=ctx)
    (citation,) = (await working_context_of(ctx)).cited(str(output)).citations
    print(*(call.tool_output.content for call in output.tool_calls), output, citation.passage.text, sep="\n---\n")


asyncio.run(main())
