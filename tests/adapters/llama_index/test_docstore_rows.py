"""The nodes of some sources in a docstore, compared with all of its nodes."""

from typing import Any

import pytest
from llama_index.core.schema import Document, ImageNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore

from oprag.errors import OptionError
from oprag.stores.adapter import adapter_of, source_in
from oprag.stores.llama_index_nodes import content_with

NAMES: list[Any] = ["a.txt", "b.txt", 7, "7", None]


def node(number: int, kind: type[TextNode | Document] = TextNode) -> TextNode | Document:
    found = kind(text=f"text {number}", id_=f"n{number}", metadata={"file_name": NAMES[number % 5], "ref_doc_id": "x"})
    if number % 3:
        found.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"d{number % 3}")
    return found


def mixed() -> SimpleDocumentStore:
    store = SimpleDocumentStore()
    store.add_documents([node(number) for number in range(30)])
    store.add_documents([node(30, ImageNode), node(31, Document)])
    return store


def of_documents() -> SimpleDocumentStore:
    store = SimpleDocumentStore()
    store.add_documents([node(number, Document) for number in range(30)])
    return store


def loaded() -> SimpleDocumentStore:
    return SimpleDocumentStore.from_dict(mixed().to_dict())


@pytest.mark.parametrize("make", [mixed, of_documents, loaded])
@pytest.mark.parametrize("field", ["file_name", "ref_doc_id", "missing"])
@pytest.mark.parametrize("sources", [["a.txt"], ["7", "b.txt"], ["d1"], ["x", "none"], []])
@pytest.mark.parametrize("nodes", [{}, {"0": "n1", "1": "n2", "2": "n16"}])
def test_the_nodes_of_sources_are_those_among_all_nodes(make: Any, field: str, sources: list[str], nodes: Any):
    adapter = adapter_of(make(), nodes=nodes)
    assert adapter is not None
    listed = list(adapter.chunks(field, sources) or ())
    assert listed == [chunk for chunk in adapter.chunks() or () if source_in(chunk, field) in sources]


def test_a_row_that_another_tool_wrote_is_not_changed():
    with pytest.raises(OptionError, match="the stored node 'n1' has no _node_content, as another tool wrote it"):
        content_with({"text": "Cats purr.", "page": 1}, {"chunk_index": 0}, "n1")
