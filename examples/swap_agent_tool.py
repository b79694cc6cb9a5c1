"""An agent that searches several times: with our search tool and middleware it reads each passage once, in order.

Without a model of yours, a stand-in calls the tool twice and copies a sentence. The small model that comes with this
package is not used here: it cannot call tools well.

pip install 'oprag[langchain,local]'
"""

import re

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import create_retriever_tool
from parts.for_langchain import reference_store
from parts.langchain_model import chat_model
from parts.places import as_read

from oprag import approximate_tokens
from oprag.langchain import OrderPreservingMiddleware, create_search_tool, working_context_of

QUESTION = "What happens when an exception is raised inside a with statement?"
NAME, DESCRIPTION = "search_reference", "Search the Python language reference."
PROMPT = "Search before you answer, and once more in other words. Cite numbered passages as [1]."


def main() -> None:
    """Ask an agent with LangChain's retriever tool, then one with our tool and middleware."""
    model, store = chat_model(), reference_store()
    retriever = store.as_retriever(search_kwargs={"k": 8})

    before = create_agent(
        model,
        [create_retriever_tool(retriever, NAME, DESCRIPTION, response_format="content_and_artifact")],
        system_prompt=PROMPT,
    )
    after = create_agent(
        model,
        [create_search_tool(store, k=8, name=NAME, description=DESCRIPTION)],
        system_prompt=PROMPT,
        middleware=[OrderPreservingMiddleware()],
    )

    for name, agent in (("before", before), ("after", after)):
        result = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]})
        print(f"{name}: keys {', '.join(sorted(result))}")
        read(name, result["messages"])
        print(f"{name}: answer {result['messages'][-1].text}\n")

    working = working_context_of(result)
    for citation in working.cited(result["messages"][-1].text).citations:
        print(f"[{citation.number}] is in {citation.source}: {citation.passage.text[:60]!r}")


def read(name: str, messages: list[BaseMessage]) -> None:
    """Print what the model read of each search: the chunks, and about how many tokens the results have."""
    tokens = 0
    for message in messages:
        if isinstance(message, ToolMessage):
            # A [1] in the text of a document is shown as [ 1 ], so that only ours are numbers of passages.
            text = re.sub(r"\[ (\d+) \]", r"[\1]", message.text)
            found = ((one.metadata["chunk_index"], one.page_content) for one in message.artifact)
            print(f"{name}: a search showed the chunks {', '.join(map(str, as_read(text, found)))}")
            tokens += approximate_tokens(message.text)
    print(f"{name}: tokens {tokens:,}")


if __name__ == "__main__":
    main()
