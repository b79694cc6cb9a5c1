"""Models, retrievers and inputs that are legal and rare."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import ValidationError

from oprag.errors import EmbeddingError, ModelError, OptionError
from oprag.langchain import OrderPreservingChain
from oprag.methods import Prompts
from tests.adapters.langchain.chain.conftest import SOURCE, Found, Model, chain_of, every_way, full_chain, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import BOOK, QUESTION, STEPS, both_sides, by_step

OURS = Prompts()


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


def test_a_conversation_that_was_set_before_stands_where_none_is_given():
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history"), ("human", "{context} {input}")])
    prompt = prompt.partial(chat_history=[("human", "Before.")])
    model = Model()
    chain = chain_of(model, prompts=STEPS | {"answer": prompt})
    chain.invoke(QUESTION)
    assert model.read[-1].startswith("Before.\n")
    chain.invoke({"input": "And?", "chat_history": [("Who?", "Ada.")]})
    assert model.read[-1].startswith("Who?\n\nAda.\n\n")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("C:{text} Q:{query}", "C:Part 0 of voyage.txt. Q:What happened on the voyage?"),
        ("C:{text} Q:{input}", "C:Part 0 of voyage.txt. Q:What happened on the voyage?"),
        ("C:{context} Q:{input} T:{text}", "C:Part 0 of voyage.txt. Q:What happened on the voyage? T:OTHER"),
    ],
)
def test_inputs_never_stand_in_place_of_what_is_read_or_asked(template: str, expected: str):
    model = Model()
    chain = chain_of(model, 1, prompts={"answer": template})
    chain.invoke({"input": QUESTION, "text": "OTHER", "query": "OTHER QUESTION"})
    assert model.read == [expected]


def test_partial_answers_win_over_the_documents_of_an_earlier_chain():
    model = Model(reply=by_step)
    chain = chain_of(model, method="map_reduce", prompts=STEPS | {"reduce": "REDUCE {context} Q: {question}"})
    chain.invoke({"input": QUESTION, "context": [Document("of an earlier chain")]})
    assert "Map " in model.read[-1]
    assert "earlier" not in model.read[-1]


@both_sides
async def test_other_questions_are_searched_for_without_the_conversation(is_async: bool):
    rewritten: list[Any] = []

    def search(given: dict[str, Any]) -> list[Document]:
        rewritten.append((given["input"], "chat_history" in given))
        return parts(2)

    chain: Any = full_chain(Model(reply=by_step), "step_down", retriever=RunnableLambda(search), variants=2)
    given = {"input": "And then?", "chat_history": [("Who?", "Ada.")]}
    await chain.ainvoke(given) if is_async else chain.invoke(given)
    assert rewritten[0] == ("And then?", True)
    assert [has_history for _, has_history in rewritten[1:]] == [False, False]


@pytest.mark.parametrize("method", ["stuff", "refine", "map_reduce", "map_rerank", "step_down", "self_route"])
def test_documents_without_text_are_no_reason_for_a_call(method: str):
    model = Model()
    answer = full_chain(model, method, retriever=Found(documents=[Document(" ", metadata={"source": SOURCE})])).answer(
        QUESTION
    )
    assert model.calls == []
    assert answer.notes == ("the retrieved chunks have no text",)


def test_prompts_without_our_fields_ask_for_markers_too():
    model = Model()
    chain = chain_of(model, cite=True)
    chain.invoke(QUESTION)
    assert model.read[0].endswith(f"Q: {QUESTION}\n{OURS.cite_instruction}")
    chain.invoke({"input": QUESTION, "choices": ["a storm", "a calm"]})
    assert OURS.cite_instruction not in model.read[1]


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
