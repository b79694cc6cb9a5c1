"""Models, retrievers and inputs that are legal and rare."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import ValidationError

from oprag.errors import EmbeddingError, ModelError, OptionError
from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.chain.conftest import SOURCE, Found, Model, chain_of, every_way, run
from tests.adapters.scripted import BOOK, QUESTION, STEPS, both_sides, by_step


@every_way
@pytest.mark.parametrize(
    ("reply", "parser", "expected"),
    [
        ('[1, 2, 3, {"a": 4}]', JsonOutputParser(), [1, 2, 3, {"a": 4}]),
        ('["one", "two words"]', JsonOutputParser(), ["one", "two words"]),
        ('{"a": [1, 2], "b": "three"}', JsonOutputParser(), {"a": [1, 2], "b": "three"}),
        ("one, two, three", CommaSeparatedListOutputParser(), ["one", "two", "three"]),
    ],
    ids=["list", "texts", "object", "commas"],
)
async def test_objects_are_the_same_streamed_and_whole(way: str, reply: str, parser: Any, expected: Any):
    model = GenericFakeChatModel(messages=iter([AIMessage(reply)]))
    result = await run(chain_of(model | parser), way, QUESTION)
    assert result["answer"] == expected


class Iterators(Model):
    """Streams that cannot be closed."""

    def stream(self, *_: Any, **__: Any) -> Any:
        return iter([AIMessageChunk(content="It "), AIMessageChunk(content="sank.")])

    def astream(self, *_: Any, **__: Any) -> Any:
        class Pieces:
            def __init__(self) -> None:
                self.left = ["sank.", "It "]

            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> AIMessageChunk:
                if not self.left:
                    raise StopAsyncIteration
                return AIMessageChunk(content=self.left.pop())

        return Pieces()


@pytest.mark.parametrize("way", ["stream", "astream"])
async def test_streams_that_cannot_be_closed(way: str):
    assert (await run(chain_of(Iterators()), way, QUESTION))["answer"] == "It sank."


@every_way
async def test_a_reply_that_cannot_be_read_is_a_failed_call(way: str):
    circle: dict[str, Any] = {}
    circle["self"] = circle
    with pytest.raises(ModelError, match="'answer' failed: ValueError"):
        await run(chain_of(RunnableLambda(lambda _: circle)), way, QUESTION)


@pytest.mark.parametrize("method", ["stuff", "refine", "map_reduce"])
def test_without_condensing_the_model_sees_the_conversation(method: str):
    model = Model(reply=lambda prompt: "An answer.")
    chain = chain_of(model, method=method, prompts={}, condense=False)
    chain.invoke({"input": "And his ship?", "chat_history": [("Who is the captain?", "Ahab.")]})
    for messages in model.calls:
        assert [message.type for message in messages] == ["system", "human", "ai", "human"]
        assert [message.text for message in messages[1:3]] == ["Who is the captain?", "Ahab."]


def test_a_conversation_that_was_set_before_stands_where_none_is_given():
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("human", "{context} {input}")])
    prompt = prompt.partial(chat_history=[("human", "Before.")])
    model = Model()
    chain = chain_of(model, prompts=STEPS | {"answer": prompt})
    chain.invoke(QUESTION)
    assert model.read[-1].startswith("Before.\n")
    chain.invoke({"input": "And?", "chat_history": [("Who?", "Ada.")]})
    assert model.read[-1].startswith("Who?\n\nAda.\n\n")


class FewVectors(Embeddings):
    """Gives one vector, whatever it is asked for."""

    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0]]


@both_sides
async def test_embeddings_that_lose_texts(is_async: bool):
    chain: Any = chain_of(Model(reply=by_step), method="map_rerank", rank_by="cosine", embeddings=FewVectors())
    with pytest.raises(EmbeddingError, match="1 vectors for 4 texts"):
        await chain.ainvoke(QUESTION) if is_async else chain.invoke(QUESTION)


def test_whole_sources_cannot_be_read_by_async_functions():
    async def read(name: str) -> str:
        return BOOK

    with pytest.raises(ValidationError, match="got an async function"):
        chain_of(Model(), read_source=read)


def test_a_chain_with_sources_can_be_pickled():
    chain = OrderPreservingChain(
        llm=GenericFakeChatModel(messages=iter(())), retriever=Found(documents=[]), read_source={SOURCE: BOOK}
    )
    copy = pickle.loads(pickle.dumps(chain))
    assert copy.invoke(QUESTION)["answer"] == chain.empty_answer


def test_what_a_config_can_set_is_listed():
    model = GenericFakeChatModel(messages=iter(())).configurable_fields(messages=ConfigurableField(id="said"))
    assert [spec.id for spec in chain_of(model).config_specs] == ["said"]


@pytest.mark.parametrize("key", ["", "chat_history", "choices", "instruction"])
def test_keys_that_mean_something_else(key: str):
    with pytest.raises(ValidationError, match="input_key"):
        chain_of(Model(), input_key=key)


@pytest.mark.parametrize("methods", [[], "stuff", ()])
@both_sides
async def test_a_comparison_of_nothing(is_async: bool, methods: Any):
    chain: Any = chain_of(Model())
    with pytest.raises(OptionError, match="list of methods"):
        await chain.aanswer_with(QUESTION, methods) if is_async else chain.answer_with(QUESTION, methods)


def test_search_arguments_are_not_shown():
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    from oprag.langchain import OrderPreservingRetriever

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    retriever = OrderPreservingRetriever(vectorstore=store, search_kwargs={"api_key": "sk-secret"})
    assert "sk-secret" not in repr(OrderPreservingChain(llm=Model(), retriever=retriever))
