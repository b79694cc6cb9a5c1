"""An agent of LlamaIndex that searches twice: each passage is shown once, with a number, in the order of its source.

A stand-in calls the tools, since no model that comes in a package calls tools well: it asks two questions, whatever it
reads. Put your own model in its place.

pip install 'oprag[llama-index,local]'
"""

import asyncio

from llama_index.core import VectorStoreIndex
from llama_index.core.agent.workflow import AgentOutput, FunctionAgent, ToolCallResult
from llama_index.core.tools import BaseTool, FunctionTool
from llama_index.core.workflow import Context
from parts.for_llama_index import reference_index
from parts.llama_index_agent import SearchingStandIn

from oprag.llama_index import create_search_tool, working_context_of

QUESTION = "What happens when an exception is raised inside a with statement?"
REWORDED = "Which method of a context manager is called when a with block raises an exception?"


def plain_tool(index: VectorStoreIndex, found: list[list[int]]) -> BaseTool:
    """A search tool as it is usually written: best first, whatever was shown before."""
    retriever = index.as_retriever(similarity_top_k=8)

    def search(query: str) -> str:
        """Search the Python language reference."""
        nodes = retriever.retrieve(query)
        found.append([node.metadata["chunk_index"] for node in nodes])
        return "\n\n".join(node.text for node in nodes)

    return FunctionTool.from_defaults(search)


async def main() -> None:
    """Ask an agent with a tool of one's own, then one with ours."""
    model, index = SearchingStandIn(questions=[QUESTION, REWORDED]), reference_index()
    found: list[list[int]] = []

    before = FunctionAgent(llm=model, tools=[plain_tool(index, found)])
    after = FunctionAgent(llm=model, tools=[create_search_tool(index, k=8)])

    for name, agent in (("before", before), ("after", after)):
        ctx = Context(agent)
        handler = agent.run(QUESTION, ctx=ctx)
        events = [event async for event in handler.stream_events()]
        results = [event.tool_output for event in events if isinstance(event, ToolCallResult)]
        output: AgentOutput = await handler
        if name == "after":
            found = [[node.metadata["chunk_index"] for node in result.raw_output] for result in results]
        print(f"{name}: keys {', '.join(sorted(type(output).model_fields))}")
        print(f"{name}: the first search showed the chunks {', '.join(map(str, found[0]))}")
        print(f"{name}: of the second one {len({*found[0]} & {*found[1]})} of 8 were shown before")
        print(f"{name}: the results have {sum(len(result.content) for result in results):,} characters")
        print(f"{name}: answer {output}\n")
    print(results[1].content)
    (citation,) = (await working_context_of(ctx)).cited("As the reference says [1].").citations
    print(f"\n[{citation.number}] is in {citation.source} at {citation.span}")


if __name__ == "__main__":
    asyncio.run(main())
