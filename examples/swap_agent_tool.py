"""An agent whose tool gives it the passages in the order of their source: the retriever inside the tool is all.

pip install 'oprag[langchain,local]' 'langchain>=1.2' langchain-text-splitters
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool
from parts.for_langchain import Reading, reference_store
from parts.langchain_model import chat_model

from oprag.langchain import OrderPreservingRetriever

QUESTION = "What happens when an exception is raised inside a with statement?"


def agent_with(model: BaseChatModel, retriever: BaseRetriever) -> Any:
    """An agent that can search."""
    tool = create_retriever_tool(retriever, "search_reference", "Search the Python language reference.")
    return create_agent(model, [tool], system_prompt="Search before you answer.")


def main() -> None:
    """Ask an agent with the store's own retriever, then one with ours."""
    model, store = chat_model(), reference_store()

    before = agent_with(model, store.as_retriever(search_kwargs={"k": 8}))
    after = agent_with(model, OrderPreservingRetriever(vectorstore=store, k=8))

    for name, agent in (("before", before), ("after", after)):
        reading = Reading()
        result = agent.invoke({"messages": [("human", QUESTION)]}, config={"callbacks": [reading]})
        print(f"{name}: keys {', '.join(sorted(result))}")
        print(f"{name}: the model read the chunks {', '.join(map(str, reading.chunks))}")
        print(f"{name}: answer {result['messages'][-1].text}\n")


if __name__ == "__main__":
    main()
