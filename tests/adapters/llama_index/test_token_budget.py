"""The token budget holds for what LlamaIndex's synthesizers really prompt."""

from __future__ import annotations

import ast
import random
from typing import Any

import pytest
from llama_index.core.prompts import PromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import Document, NodeWithScore, TextNode

from oprag.llama_index import OrderPreservingPostprocessor
from tests.adapters.llama_index.conftest import ListRetriever, RecordingLLM, prose, ranked, stamped_node

TEMPLATE = PromptTemplate("<context>{context_str}</context>{query_str}")


def _prompted(nodes: list[NodeWithScore], postprocessor: OrderPreservingPostprocessor, mode: ResponseMode) -> str:
    """The context that a language model reads."""
    llm = RecordingLLM()
    engine = RetrieverQueryEngine.from_args(
        ListRetriever(nodes),
        llm=llm,
        node_postprocessors=[postprocessor],
        response_mode=mode,
        text_qa_template=TEMPLATE,
    )
    engine.query("question")
    (prompt,) = llm.prompts
    context = prompt.split("<context>")[1].split("</context>")[0]
    # LlamaIndex 0.14 puts the texts of "simple_summarize" into the prompt as a printed list.
    if mode is ResponseMode.SIMPLE_SUMMARIZE and context.startswith("["):
        (context,) = ast.literal_eval(context)
    return context


def _nodes(**fields: Any) -> list[NodeWithScore]:
    rng = random.Random(1)
    nodes = [stamped_node(prose(rng, 2), number, title="A long title of the book") for number in range(9)]
    for node in nodes:
        for name, value in fields.items():
            setattr(node, name, value)
    rng.shuffle(nodes)
    return ranked(nodes)


def _with_trailing_space() -> list[NodeWithScore]:
    nodes = _nodes()
    for scored in nodes:
        assert isinstance(scored.node, TextNode)
        scored.node.text += " \n"
    return nodes


def _with_empty_texts() -> list[NodeWithScore]:
    nodes = _nodes()
    for scored in nodes[::2]:
        assert isinstance(scored.node, TextNode)
        scored.node.text = ""
    return nodes


def _documents() -> list[NodeWithScore]:
    return ranked(
        Document(text=f"{scored.text}\n", metadata=scored.node.metadata, id_=scored.node_id) for scored in _nodes()
    )


NODES = {
    "default": _nodes,
    "everything excluded": lambda: _nodes(excluded_llm_metadata_keys=["title", "file_name", "chunk_index"]),
    "one key excluded": lambda: _nodes(excluded_llm_metadata_keys=["title"]),
    "metadata template": lambda: _nodes(metadata_template="-- {key} is {value} --", metadata_separator="\n\n"),
    "text template": lambda: _nodes(text_template="<<< {metadata_str} >>>\n-----\n{content}"),
    "text template with text below": lambda: _nodes(
        text_template="{metadata_str}\n{content}\n" + "end of the excerpt " * 4
    ),
    "metadata below the text": lambda: _nodes(text_template="{content}\n\n{metadata_str}"),
    "trailing white space": _with_trailing_space,
    "empty texts": _with_empty_texts,
    "documents": _documents,
}


@pytest.mark.parametrize("mode", [ResponseMode.COMPACT, ResponseMode.SIMPLE_SUMMARIZE])
@pytest.mark.parametrize("options", [{}, {"stitch": True}, {"header": "{rank}"}, {"annotate": True}, {"order": "rank"}])
@pytest.mark.parametrize("kind", NODES)
def test_what_is_prompted_fits(kind: str, options: dict[str, Any], mode: ResponseMode):
    nodes = NODES[kind]()
    for token_budget in (320, 400, 777, 1200):
        postprocessor = OrderPreservingPostprocessor(token_budget=token_budget, count_tokens=len, **options)
        assert 0 < len(_prompted(nodes, postprocessor, mode)) <= token_budget
