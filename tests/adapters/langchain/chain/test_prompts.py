"""Prompts of LangChain's own kinds, with whatever variables they have; what fills them is data."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.prompts import (
    ChatPromptTemplate,
    FewShotPromptTemplate,
    HumanMessagePromptTemplate,
    MessagesPlaceholder,
    PromptTemplate,
    SystemMessagePromptTemplate,
)

from oprag.langchain import OrderPreservingChain
from tests.adapters.langchain.chain.conftest import Found, Model, run
from tests.adapters.langchain.conftest import parts
from tests.adapters.scripted import HOSTILE, QUESTION

PARTS = parts(2)
HISTORY = [HumanMessage("Who sailed?"), AIMessage("Ada.")]


def dated() -> str:
    return "a date"


def partly() -> Any:
    return PromptTemplate.from_template("{context} {input} in {language}").partial(language="French")


def partly_chat() -> Any:
    prompt = ChatPromptTemplate.from_messages([("system", "On {date}: {context}"), ("human", "{input}")])
    return prompt.partial(date=dated)


# Each is used with LangChain's chain and with ours, over the same inputs.
TEMPLATES: list[Any] = [
    PromptTemplate.from_template("{context} {input}"),
    PromptTemplate.from_template("{context} {input} {language}"),
    partly(),
    partly_chat(),
    PromptTemplate.from_template("{{context}} {{input}} {{language}}", template_format="mustache"),
    ChatPromptTemplate.from_template("{context} {input} {language} {number}"),
    ChatPromptTemplate.from_messages(
        [("system", "Read {context}"), MessagesPlaceholder("chat_history"), ("human", "{input}")]
    ),
    ChatPromptTemplate.from_messages(
        [("system", "Read {context}"), MessagesPlaceholder("chat_history", optional=True), ("human", "{input}")]
    ),
    ChatPromptTemplate.from_messages(
        [("system", "Read {context}"), ("placeholder", "{chat_history}"), ("human", "{input}")]
    ),
    ChatPromptTemplate.from_messages(
        [("system", "Read {context}"), MessagesPlaceholder("examples"), ("human", "{input}")]
    ),
    ChatPromptTemplate.from_messages(
        [("system", "Read {context}"), MessagesPlaceholder("chat_history", n_messages=1), ("human", "{input}")]
    ),
    ChatPromptTemplate.from_messages(
        [
            SystemMessagePromptTemplate.from_template("Read {context}"),
            HumanMessage("An earlier question."),
            AIMessage("An earlier answer."),
            HumanMessagePromptTemplate.from_template("{input}"),
        ]
    ),
    ChatPromptTemplate.from_messages([("user", "{input}"), ("ai", "Let me see."), ("human", "{context}")]),
    FewShotPromptTemplate(
        examples=[{"q": "1 + 1?", "a": "2"}],
        example_prompt=PromptTemplate.from_template("{q} {a}"),
        prefix="{context}",
        suffix="{input}",
        input_variables=["context", "input"],
    ),
    # Names that are ours, or other names of our fields, and that the caller gives a value.
    PromptTemplate.from_template("{context} {input} {query}"),
    PromptTemplate.from_template("{context} {input} {text}"),
    PromptTemplate.from_template("{context} {input} {instruction}"),
    PromptTemplate.from_template("{context} {input} {summaries} {count}"),
]
INPUTS: dict[str, Any] = {
    "input": QUESTION,
    "language": "German",
    "number": 3,
    "chat_history": HISTORY,
    "examples": [HumanMessage("An example?"), AIMessage("Yes.")],
    "query": "the caller's query",
    "text": "the caller's text",
    "instruction": "the caller's instruction",
    "summaries": "the caller's summaries",
    "count": "the caller's count",
}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: str(template)[:60])
async def test_a_prompt_of_create_retrieval_chain_is_filled_as_there(template: Any):
    theirs, mine = Model(), Model()
    retriever = Found(documents=PARTS)
    official = create_retrieval_chain(retriever, create_stuff_documents_chain(theirs, template))
    chain = OrderPreservingChain(llm=mine, retriever=retriever, prompts={"answer": template}, condense=False)
    official.invoke(INPUTS)
    for way in ("invoke", "astream"):
        mine.calls.clear()
        await run(chain, way, INPUTS)
        assert mine.calls == theirs.calls, way


def test_a_variable_without_a_value_is_named():
    from oprag.errors import PromptError

    prompt = PromptTemplate.from_template("{context} {input} {language}")
    chain = OrderPreservingChain(llm=Model(), retriever=Found(documents=PARTS), prompts={"answer": prompt})
    with pytest.raises(PromptError, match="language"):
        chain.invoke({"input": QUESTION})


def test_pictures_in_a_prompt_are_refused_not_dropped():
    from oprag.errors import PromptError

    prompt = ChatPromptTemplate.from_messages(
        [("human", [{"type": "text", "text": "{context} {input}"}, {"type": "image_url", "image_url": "{picture}"}])]
    )
    chain = OrderPreservingChain(llm=Model(), retriever=Found(documents=PARTS), prompts={"answer": prompt})
    with pytest.raises(PromptError, match="only contain text"):
        chain.invoke({"input": QUESTION, "picture": "https://example.org/p.png"})


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("template_format", ["f-string", "mustache", "jinja2"])
def test_templates_of_every_format_fill_in_data(text: str, template_format: Any):
    if template_format == "jinja2":
        pytest.importorskip("jinja2")
    plain = "READ {context} ASK {input} END"
    template = plain if template_format == "f-string" else plain.replace("{", "{{{").replace("}", "}}}")
    if template_format == "jinja2":
        template = plain.replace("{", "{{").replace("}", "}}")
    prompt = PromptTemplate.from_template(template, template_format=template_format)
    model = Model()
    retriever = Found(documents=[Document(text, metadata={"source": "a", "chunk_index": 0})])
    chain = OrderPreservingChain(llm=model, retriever=retriever, prompts={"answer": prompt})
    chain.invoke({"input": f"{text}?"})
    assert model.read == [f"READ {text} ASK {text}? END"]


def test_a_model_that_completes_texts_reads_and_writes_texts():
    from langchain_core.language_models import FakeStreamingListLLM

    class Texts(FakeStreamingListLLM):
        def _call(self, prompt: str, *rest: Any, **more: Any) -> str:
            seen.append(prompt)
            return super()._call(prompt, *rest, **more)

    seen: list[str] = []
    chain = OrderPreservingChain(llm=Texts(responses=["An answer."]), retriever=Found(documents=PARTS))
    assert chain.invoke(QUESTION)["answer"] == "An answer."
    assert "System:" not in seen[0]
    assert "Human:" not in seen[0]
    assert PARTS[0].page_content in seen[0]
    assert chain.answer(QUESTION).text == "An answer."
    assert "".join(piece.get("answer", "") for piece in chain.stream(QUESTION)) == "An answer."
