"""The nodes of some sources in a docstore, compared with all of its nodes."""

from typing import Any

import pytest
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode

from oprag.errors import OptionError
from oprag.stores.llama_index_nodes import content_with

NAMES: list[Any] = ["a.txt", "b.txt", 7, "7", None]


def node(number: int, kind: type[TextNode | Document] = TextNode) -> TextNode | Document:
    found = kind(text=f"text {number}", id_=f"n{number}", metadata={"file_name": NAMES[number % 5], "ref_doc_id": "x"})
    if number % 3:
        found.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"d{number % 3}")
    return found


def test_a_row_that_another_tool_wrote_is_not_changed():
    with pytest.raises(OptionError, match="the stored node 'n1' has no _node_content, as another tool wrote it"):
        content_with({"text": "Cats purr.", "page": 1}, {"chunk_index": 0}, "n1")
