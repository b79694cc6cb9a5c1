"""The same calls of LangChain's chains and of ours give the same keys, types and pieces."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains import (
    ConversationalRetrievalChain,
    RetrievalQA,
    create_history_aware_retriever,
    create_retrieval_chain,
)
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate

from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.chain.conftest import WAYS, Found, Model, every_way, ranked, run
from tests.adapters.langchain.conftest import numbers_of, parts
from tests.adapters.scripted import QUESTION

PROMPT = ChatPromptTemplate.from_messages([("system", "Read this:\n\n{context}"), ("human", "{input}")])


def found(count: int = 4) -> Found:
    return Found(documents=ranked(parts(count)))


def official(model: Any, retriever: Any = None, prompt: Any = PROMPT) -> Any:
    return create_retrieval_chain(retriever or found(), create_stuff_documents_chain(model, prompt))


def ours(model: Any, retriever: Any = None, prompt: Any = PROMPT, **options: Any) -> OrderPreservingChain:
    return OrderPreservingChain(llm=model, retriever=retriever or found(), prompts={"answer": prompt}, **options)


def described(result: Any) -> list[tuple[str, type]]:
    """Keys in their sequence, with the types; a subclass of str is a string."""
    return [(key, str if isinstance(value, str) else type(value)) for key, value in result.items()]


@every_way
@pytest.mark.parametrize(
    "extra",
    [{}, {"language": "French", "number": 3}, {"chat_history": []}, {"context": "old"}, {"answer": "old"}],
    ids=str,
)
async def test_the_output_is_that_of_create_retrieval_chain(way: str, extra: dict[str, Any]):
    given = {"input": QUESTION, **extra}
    theirs = await run(official(Model()), way, given)
    mine = await run(ours(Model()), way, given)
    assert sorted(described(mine)) == sorted(described(theirs))
    assert [document.page_content for document in mine["context"]] == [
        document.page_content for document in reversed(theirs["context"])
    ]
    assert {**mine, "context": None} == {**theirs, "context": None}
    assert all(isinstance(document, Document) for document in mine["context"])


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("extra", [{}, {"language": "French"}, {"context": ["old"]}, {"answer": "old"}], ids=str)
async def test_the_pieces_are_those_of_create_retrieval_chain(way: str, extra: dict[str, Any]):
    async def pieces(chain: Any) -> list[Any]:
        given = {"input": QUESTION, **extra}
        return list(chain.stream(given)) if way == "stream" else [piece async for piece in chain.astream(given)]

    theirs = await pieces(official(Model()))
    mine = await pieces(ours(Model()))
    # LangChain's chain also passes on the empty chunks that a model may send; a reader sees nothing of them.
    theirs = [piece for piece in theirs if piece.get("answer") != ""]
    assert [list(piece) for piece in mine] == [list(piece) for piece in theirs]
    assert [piece["answer"] for piece in mine[2:]] == [piece["answer"] for piece in theirs[2:]] == ["An", " answer."]
    assert mine[0] == theirs[0]
    assert {type(piece).__name__ for piece in mine} == {type(piece).__name__ for piece in theirs}


CHAIN_TYPES = ["stuff", "map_reduce", "refine", "map_rerank"]


def by_chain_type(chain_type: str) -> Model:
    return Model(reply=lambda prompt: "An answer.\nScore: 80" if chain_type == "map_rerank" else "An answer.")


@pytest.mark.filterwarnings("ignore:The a?apply_and_parse method is deprecated")
@every_way
@pytest.mark.parametrize("chain_type", CHAIN_TYPES)
@pytest.mark.parametrize("given", [QUESTION, {"query": QUESTION}, {"query": QUESTION, "user": "u"}], ids=str)
@pytest.mark.parametrize("documents", [False, True])
async def test_the_output_is_that_of_retrieval_qa(chain_type: str, way: str, given: Any, documents: bool):
    options: Any = {"chain_type": chain_type, "return_source_documents": documents}
    theirs = RetrievalQA.from_chain_type(by_chain_type(chain_type), retriever=found(), **options)
    mine = OrderPreservingChain.from_chain_type(by_chain_type(chain_type), retriever=found(), **options)
    expected = await run(theirs, "ainvoke" if way in WAYS[1::2] else "invoke", given)
    result = await run(mine, way, given)
    assert sorted(described(result)) == sorted(described(expected))
    assert result["query"] == expected["query"] == QUESTION
    assert result["result"] == expected["result"] == "An answer."
    assert result | {"source_documents": None} == expected | {"source_documents": None}
    if documents:
        assert numbers_of(result["source_documents"]) == [0, 1, 2, 3]


def test_from_chain_type_has_the_keys_of_retrieval_qa():
    for options in ({}, {"return_source_documents": True}, {"input_key": "ask", "output_key": "say"}):
        theirs = RetrievalQA.from_chain_type(Model(), retriever=found(), **options)
        mine: Any = OrderPreservingChain.from_chain_type(Model(), retriever=found(), **options)
        assert mine.input_keys == theirs.input_keys
        assert mine.output_keys == theirs.output_keys
        assert sorted(mine.invoke("A question?")) == sorted(theirs.invoke("A question?"))


CLASSIC_PROMPTS: list[Any] = [
    ("stuff", {"prompt": PromptTemplate.from_template("STUFF {context} Q: {question}")}),
    (
        "map_reduce",
        {
            "question_prompt": PromptTemplate.from_template("MAP {context} Q: {question}"),
            "combine_prompt": PromptTemplate.from_template("COMBINE {summaries} Q: {question}"),
        },
    ),
    (
        "refine",
        {
            "question_prompt": PromptTemplate.from_template("FIRST {context_str} Q: {question}"),
            "refine_prompt": PromptTemplate.from_template("REFINE {existing_answer} {context_str} Q: {question}"),
        },
    ),
]


@pytest.mark.parametrize(("chain_type", "prompts"), CLASSIC_PROMPTS, ids=CHAIN_TYPES[:3])
async def test_prompts_of_retrieval_qa_are_read_as_there(chain_type: str, prompts: dict[str, Any]):
    theirs, mine = Model(), Model()
    RetrievalQA.from_chain_type(
        theirs, chain_type, retriever=Found(documents=parts(3)), chain_type_kwargs=prompts
    ).invoke(QUESTION)
    # Chunks of a text that touch are one passage; the official chains read each document by itself.
    chain = OrderPreservingChain.from_chain_type(
        mine, chain_type, retriever=found(3), chain_type_kwargs=prompts, passage_tokens=6, max_concurrency=1
    )
    chain.invoke(QUESTION)
    assert [message for prompt in mine.calls for message in prompt] == [
        message for prompt in theirs.calls for message in prompt
    ]


def test_a_prompt_of_none_is_the_default():
    answers = []
    for kwargs in ({"prompt": None}, None):
        model = Model()
        chain = OrderPreservingChain.from_chain_type(model, retriever=found(3), chain_type_kwargs=kwargs)
        chain.invoke(QUESTION)
        answers.append(model.read)
    assert answers[0] == answers[1]


def test_names_of_variables_that_retrieval_qa_is_told():
    prompt = PromptTemplate.from_template("STUFF {documents} Q: {question}")
    kwargs: dict[str, Any] = {"prompt": prompt, "document_variable_name": "documents"}
    theirs, mine = Model(), Model()
    RetrievalQA.from_chain_type(theirs, retriever=Found(documents=parts(3)), chain_type_kwargs=kwargs).invoke(QUESTION)
    OrderPreservingChain.from_chain_type(mine, retriever=found(3), chain_type_kwargs=kwargs).invoke(QUESTION)
    assert mine.read == theirs.read


@pytest.mark.parametrize(
    ("chain_type", "kwargs"),
    [
        (
            "map_reduce",
            {
                "question_prompt": PromptTemplate.from_template("MAP {part} Q: {question}"),
                "combine_prompt": PromptTemplate.from_template("COMBINE {all_of_them} Q: {question}"),
                "map_reduce_document_variable_name": "part",
                "combine_document_variable_name": "all_of_them",
            },
        ),
        (
            "map_reduce",
            {
                "question_prompt": PromptTemplate.from_template("MAP {docs} Q: {question}"),
                "combine_prompt": PromptTemplate.from_template("COMBINE {docs} Q: {question}"),
                "collapse_prompt": PromptTemplate.from_template("COLLAPSE {docs} Q: {question}"),
                "map_reduce_document_variable_name": "docs",
                "combine_document_variable_name": "docs",
            },
        ),
        (
            "refine",
            {
                "question_prompt": PromptTemplate.from_template("FIRST {part} Q: {question}"),
                "refine_prompt": PromptTemplate.from_template("REFINE {so_far} {part} Q: {question}"),
                "document_variable_name": "part",
                "initial_response_name": "so_far",
            },
        ),
    ],
    ids=["map_reduce", "map_reduce, one name for both", "refine"],
)
def test_names_of_variables_of_other_chain_types(chain_type: str, kwargs: dict[str, Any]):
    theirs, mine = Model(), Model()
    RetrievalQA.from_chain_type(
        theirs, chain_type, retriever=Found(documents=parts(3)), chain_type_kwargs=kwargs
    ).invoke(QUESTION)
    chain = OrderPreservingChain.from_chain_type(
        mine, chain_type, retriever=found(3), chain_type_kwargs=kwargs, passage_tokens=6, max_concurrency=1
    )
    chain.invoke(QUESTION)
    assert mine.read == theirs.read


def test_collapsing_takes_token_max():
    options: Any = {"chain_type": "map_reduce", "passage_tokens": 8}
    model = Model(reply=lambda prompt: "A long partial answer of eight words indeed.")
    chain = OrderPreservingChain.from_chain_type(
        model, retriever=found(6), chain_type_kwargs={"token_max": 25, "verbose": False}, **options
    )
    chain.invoke(QUESTION)
    often = len(model.calls)
    model.calls.clear()
    OrderPreservingChain.from_chain_type(model, retriever=found(6), **options).invoke(QUESTION)
    assert often > len(model.calls) == 7


@pytest.mark.parametrize(
    ("chain_type", "kwargs"),
    [
        ("stuff", {"question_prompt": PromptTemplate.from_template("{context} {question}")}),
        ("stuff", {"document_prompt": PromptTemplate.from_template("{page_content}")}),
        ("refine", {"prompt": PromptTemplate.from_template("{context} {question}")}),
        ("stuff", {"promt": PromptTemplate.from_template("{context} {question}")}),
    ],
    ids=str,
)
def test_arguments_of_a_chain_type_without_a_counterpart_are_refused(chain_type: str, kwargs: dict[str, Any]):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        OrderPreservingChain.from_chain_type(Model(), chain_type, retriever=found(), chain_type_kwargs=kwargs)


CONVERSATIONS: list[Any] = [
    [],
    [("Who sailed?", "Ada.")],
    [HumanMessage("Who sailed?"), AIMessage("Ada.")],
]


@pytest.mark.parametrize("history", CONVERSATIONS, ids=["none", "pairs", "messages"])
@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_the_output_is_that_of_conversational_retrieval_chain(history: Any, documents: bool, way: str):
    theirs, mine = Model(), Model()
    searched, mine_searched = found(), found()
    expected = await run(
        ConversationalRetrievalChain.from_llm(theirs, retriever=searched, return_source_documents=documents),
        way,
        {"question": QUESTION, "chat_history": history},
    )
    chain = OrderPreservingChain(
        llm=mine,
        retriever=mine_searched,
        input_key="question",
        documents_key="source_documents" if documents else None,
    )
    result = await run(chain, way, {"question": QUESTION, "chat_history": history})
    assert sorted(described(result)) == sorted(described(expected))
    assert result["chat_history"] is history
    assert len(mine.calls) == len(theirs.calls) == (2 if history else 1)
    assert mine_searched.asked == searched.asked


CONDENSE = ChatPromptTemplate.from_messages(
    [("system", "Rewrite the question."), MessagesPlaceholder("chat_history"), ("human", "{input}")]
)


@every_way
async def test_a_history_aware_retriever_gets_what_it_gets_from_create_retrieval_chain(way: str):
    history = [HumanMessage("Who sailed?"), AIMessage("Ada.")]
    theirs, mine = Model(), Model()
    searched, mine_searched = found(), found()
    given = {"input": QUESTION, "chat_history": history, "language": "French"}
    expected = await run(official(theirs, create_history_aware_retriever(theirs, searched, CONDENSE)), way, given)
    result = await run(ours(mine, create_history_aware_retriever(mine, mine_searched, CONDENSE)), way, given)
    assert sorted(described(result)) == sorted(described(expected))
    assert mine.calls[0] == theirs.calls[0]
    assert mine_searched.asked == searched.asked == ["An answer."]
    assert len(mine.calls) == len(theirs.calls) == 2
