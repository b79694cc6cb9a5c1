"""Failures of retrievers and embedding models, unreadable sources, and nodes that are too long for a prompt."""

from __future__ import annotations

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

from tests.adapters.llama_index.engine.conftest import Model, engine_of, every_way, run


class Failing(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        raise LookupError("the index is gone")


@every_way
@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_errors_of_a_retriever_are_its_own(way: str, on_error: str):
    model = Model()
    with pytest.raises(LookupError, match="the index is gone"):
        await run(engine_of(model, retriever=Failing(), on_error=on_error), way)
    assert model.calls == []
