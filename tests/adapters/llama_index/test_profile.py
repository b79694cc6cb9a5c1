"""Profiles around a retriever that has options of its own, and `k` where LlamaIndex retrieves too few."""

from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex

from oprag.errors import RetrievalWarning
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine, OrderPreservingRetriever
from oprag.methods.profile import Profile
from tests.adapters.llama_index.conftest import HashedWords, RecordingLLM, stamped_node

QUESTION = "Which text has number seven?"


@pytest.fixture
def index() -> Any:
    nodes = [stamped_node(f"text of number {number}.", number) for number in range(12)]
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents(nodes)
    return VectorStoreIndex(nodes, embed_model=HashedWords(), storage_context=storage)


FEW = r"k=5 has no effect: the retriever returned only 2; .*similarity_top_k"


@pytest.mark.parametrize("kind", [OrderPreservingRetriever, OrderPreservingPostprocessor, OrderPreservingQueryEngine])
def test_k_without_effect_warns(index, kind: Any):
    """As it is with a profile that was measured with many chunks, and LlamaIndex's default of two."""
    inner = index.as_retriever()
    parts: dict[str, Any] = {} if kind is OrderPreservingPostprocessor else {"retriever": inner}
    parts |= {"llm": RecordingLLM()} if kind is OrderPreservingQueryEngine else {}
    made = kind.from_profile(Profile(context={"k": 5}), **parts)
    found = inner.retrieve(QUESTION)
    with pytest.warns(RetrievalWarning, match=FEW):
        _ = made.postprocess_nodes(found) if kind is OrderPreservingPostprocessor else made.retrieve(QUESTION)
