import sys
import warnings

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeWithScore, TextNode

from oprag import PositionWarning, build_context
from oprag.langchain import OrderPreservingRetriever
from oprag.llama_index import OrderPreservingQueryEngine
from oprag.llama_index import OrderPreservingRetriever as OrderPreservingLlamaRetriever
from tests.helpers import hit

VAGUE = [hit(f"text {number}", number, source="book") for number in range(3)]


class Found(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(f"text {number}", metadata={"source": "book"}) for number in range(3)]


def line_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    (warning,) = (one for one in caught if one.category is PositionWarning)
    assert warning.filename == __file__
    return warning.lineno


def here():
    return sys._getframe(1).f_lineno


def test_a_warning_points_at_the_caller():
    assert line_of(lambda: build_context(VAGUE)) == here()


def test_a_warning_points_through_the_framework():
    retriever = OrderPreservingRetriever(retriever=Found())
    assert line_of(lambda: retriever.invoke("What?")) == here()
    chain = RunnableLambda(lambda question: question) | retriever
    assert line_of(lambda: chain.invoke("What?")) == here()


class FoundNodes(LlamaRetriever):
    def _retrieve(self, query_bundle):
        return [
            NodeWithScore(node=TextNode(text=f"text {number}", metadata={"file_name": "book"})) for number in range(3)
        ]


def test_a_warning_points_through_llama_index():
    retriever = OrderPreservingLlamaRetriever(retriever=FoundNodes())
    assert line_of(lambda: retriever.retrieve("What?")) == here()
    engine = OrderPreservingQueryEngine(llm=MockLLM(), retriever=FoundNodes())
    assert line_of(lambda: engine.query("What?")) == here()
