"""Profiles around a retriever that has options of its own, and `k` where LlamaIndex retrieves too few."""

from typing import Any

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from pydantic import ValidationError

from oprag.errors import RetrievalWarning
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingQueryEngine, OrderPreservingRetriever
from oprag.methods.profile import Profile, write_profile
from tests.adapters.llama_index.conftest import HashedWords, RecordingLLM, stamped_node

CONTEXT: dict[str, Any] = {
    "k": 5,
    "max_candidates": 9,
    "count_tokens": "words",
    "redundancy_threshold": 0.99,
    "gap": "[...]",
}
QUESTION = "Which text has number seven?"


@pytest.fixture
def index() -> Any:
    nodes = [stamped_node(f"text of number {number}.", number) for number in range(12)]
    storage = StorageContext.from_defaults()
    storage.docstore.add_documents(nodes)
    return VectorStoreIndex(nodes, embed_model=HashedWords(), storage_context=storage)


@pytest.fixture
def path(tmp_path) -> Any:
    write_profile(Profile(context=CONTEXT), tmp_path / "oprag.toml")
    return tmp_path / "oprag.toml"


def test_a_retriever_of_the_profile_has_its_own_options(path, index):
    inner = index.as_retriever(similarity_top_k=9)
    retriever = OrderPreservingRetriever.from_profile(path, retriever=inner)
    with pytest.raises(ValidationError, match="has its own options"):
        OrderPreservingQueryEngine.from_profile(path, llm=RecordingLLM(), retriever=retriever)


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


def test_a_saved_postprocessor_names_a_counter_that_it_left_out(path, index):
    made = OrderPreservingPostprocessor.from_profile(path, index=index, read_neighbors=index.docstore)
    assert set(made.to_dict()["left_out"]) == {"count_tokens", "index", "read_neighbors"}
