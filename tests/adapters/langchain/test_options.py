from dataclasses import fields

from oprag import ContextOptions
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever

OPTIONS = {field.name for field in fields(ContextOptions)}


def test_nothing_else_is_declared_but_what_belongs_to_langchain():
    beside = {"embeddings", "vector_cache", "read_neighbors", "read_source"}
    assert set(OrderPreservingCompressor.model_fields) - OPTIONS == {"annotate", *beside}
    assert set(OrderPreservingRetriever.model_fields) - OPTIONS == {
        *("retriever", "vectorstore", "search_type", "search_kwargs", "store_order", "annotate", *beside),
        *("name", "tags", "metadata"),
    }
