from dataclasses import fields

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from pydantic import BaseModel

from oprag import ContextOptions
from oprag.llama_index import OrderPreservingPostprocessor, OrderPreservingRetriever

OPTIONS = {field.name for field in fields(ContextOptions)}


@pytest.mark.parametrize("component", [OrderPreservingPostprocessor, OrderPreservingRetriever])
def test_nothing_else_is_declared_but_what_belongs_to_llama_index(component: type[BaseModel]):
    own = {"annotate", "retriever", "callback_manager", "object_map"}
    beside = {"embed_model", "vector_cache", "read_neighbors", "index", "read_source", "store_order"}
    assert set(component.model_fields) - OPTIONS <= own | beside


def test_postprocessor_is_one_and_has_its_own_class_name():
    assert issubclass(OrderPreservingPostprocessor, BaseNodePostprocessor)
    assert OrderPreservingPostprocessor.class_name() == "OrderPreservingPostprocessor"
