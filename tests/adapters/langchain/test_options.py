from dataclasses import fields

from oprag import ContextOptions
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever

OPTIONS = {field.name for field in fields(ContextOptions)}


def test_nothing_else_is_declared_but_what_belongs_to_langchain():
    for_vectors = {"embeddings", "vector_cache", "read_neighbors"}
    assert set(OrderPreservingCompressor.model_fields) - OPTIONS == {"annotate", *for_vectors}
    assert set(OrderPreservingRetriever.model_fields) - OPTIONS == {
        *("retriever", "vectorstore", "search_type", "search_kwargs", "store_order", "annotate", *for_vectors),
        *("name", "tags", "metadata"),
    }
