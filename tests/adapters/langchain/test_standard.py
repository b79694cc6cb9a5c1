"""LangChain's own standard tests for retrievers, unmodified."""

from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from oprag.langchain import OrderPreservingRetriever
from tests.adapters.langchain.conftest import parts, store_of
from tests.adapters.scripted import QUESTION


class TestOverVectorStore(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return OrderPreservingRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": store_of(parts())}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestOverRetriever(TestOverVectorStore):
    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": store_of(parts()).as_retriever()}


class TestStitchedOverVectorStore(TestOverVectorStore):
    """With one document a passage; every second part is in the store, so each is a passage of its own."""

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": store_of(parts()[::2]), "stitch": True}
