"""Stamping: numbers that no store loses, and that neither the embedder nor the model sees."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

import pytest
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.node_parser import HierarchicalNodeParser, SentenceSplitter
from llama_index.core.schema import (
    BaseNode,
    Document,
    MetadataMode,
    NodeRelationship,
    TextNode,
    TransformComponent,
)
from pydantic import Field, ValidationError

from oprag.errors import ChunkError
from oprag.llama_index import StampPositions
from tests.adapters.llama_index.conftest import prose, ranked


def _nodes(*sources: str, **fields: Any) -> list[TextNode]:
    return [
        TextNode(text=f"text {place}", metadata={"file_name": source, "title": "T"}, **fields)
        for place, source in enumerate(sources)
    ]


def _stamps(nodes: Sequence[BaseNode]) -> list[int]:
    return [node.metadata["chunk_index"] for node in nodes]


def test_embedder_and_model_see_the_same_as_before():
    given = _nodes("a", "a", excluded_embed_metadata_keys=["title"], excluded_llm_metadata_keys=["file_name"])
    stamped = StampPositions()(given)
    for mode in (MetadataMode.EMBED, MetadataMode.LLM):
        assert [node.get_content(mode) for node in stamped] == [node.get_content(mode) for node in given]
    assert "chunk_index: 1" in stamped[1].get_content(MetadataMode.ALL)
    assert stamped[0].excluded_embed_metadata_keys == ["title", "chunk_index", "chunk_numbering"]
    assert stamped[0].excluded_llm_metadata_keys == ["file_name", "chunk_index", "chunk_numbering"]


def test_nothing_given_is_changed_and_everything_else_is_kept():
    document = Document(text=prose(random.Random(1), 40), metadata={"file_name": "book"})
    given = SentenceSplitter(chunk_size=64, chunk_overlap=0)([document])
    before = copy.deepcopy(given)
    stamped = StampPositions()(given)
    assert [node.to_dict() for node in given] == [node.to_dict() for node in before]
    for now, then in zip(stamped, given, strict=True):
        assert now is not then
        assert type(now) is type(then)
        ignored = {"metadata", "excluded_embed_metadata_keys", "excluded_llm_metadata_keys"}
        assert now.model_dump(exclude=ignored) == then.model_dump(exclude=ignored)


def test_parents_are_numbered_before_their_children():
    document = Document(text=prose(random.Random(4), 120), metadata={"file_name": "book"})
    given = HierarchicalNodeParser.from_defaults(chunk_sizes=[512, 128, 64], chunk_overlap=0)([document])
    stamped = StampPositions()(given)
    number = {node.node_id: node.metadata["chunk_index"] for node in stamped}
    assert sorted(number.values()) == list(range(len(given)))
    for node in stamped:
        children = node.relationships.get(NodeRelationship.CHILD, [])
        assert isinstance(children, list)
        inside = [number[child.node_id] for child in children]
        assert inside == sorted(inside)
        assert all(number[node.node_id] < child for child in inside)
    starts = [
        document.text.index(node.get_content()) for node in sorted(stamped, key=lambda node: number[node.node_id])
    ]
    assert starts == sorted(starts)


def test_parents_in_a_circle_lose_no_node():
    first, second = _nodes("a", "a")
    first.relationships[NodeRelationship.PARENT] = second.as_related_node_info()
    second.relationships[NodeRelationship.PARENT] = first.as_related_node_info()
    assert sorted(_stamps(StampPositions()([first, second, *_nodes("a")]))) == [0, 1, 2]


@pytest.mark.parametrize("bad", [None, 5])
def test_what_is_no_list_is_refused(bad: Any):
    with pytest.raises(ChunkError):
        StampPositions()(bad)


def test_scored_nodes_are_refused():
    with pytest.raises(ChunkError, match="NodeWithScore at index 0"):
        StampPositions()(ranked(_nodes("a")))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [5, "", (), ("a", 1)])
def test_a_bad_source_key_is_refused_at_construction_as_assembly_does(key: Any):
    with pytest.raises(ValidationError, match="source_key must be a metadata key"):
        StampPositions(source_key=key)


# Saving, and the hashes of a pipeline's cache


@pytest.mark.parametrize(
    "options", [{}, {"source": "book"}, {"source_key": "work"}, {"source_key": ("author", "work")}]
)
def test_dict_and_back(options: dict[str, Any]):
    stamp = StampPositions(**options)
    assert stamp.to_dict()["class_name"] == "StampPositions"
    for loaded in (StampPositions.from_dict(stamp.to_dict()), StampPositions.from_json(stamp.to_json())):
        assert (loaded.source, loaded.source_key) == (stamp.source, stamp.source_key)


def test_a_function_is_not_saved_and_loading_says_so():
    saved = _by("work").to_dict()
    with pytest.raises(ValidationError, match="source_key must be a metadata key"):
        StampPositions.from_dict(dict(saved))
    assert StampPositions.from_dict(saved, source_key="work").source_key == "work"


def test_equal_stamps_have_equal_hashes_and_others_have_others():
    nodes = _nodes("a", "b")
    stamps = [
        StampPositions(),
        StampPositions(source="x"),
        StampPositions(source_key="title"),
        StampPositions(source_key="file_name"),
        StampPositions(source_key=("title", "file_name")),
    ]
    hashes = [get_transformation_hash(nodes, stamp) for stamp in stamps]
    assert hashes == [get_transformation_hash(nodes, copy.copy(stamp)) for stamp in stamps]
    assert len(set(hashes)) == len(stamps)


def _by(name: str) -> StampPositions:
    return StampPositions(source_key=lambda chunk: chunk.metadata[name])


def test_a_cache_does_not_answer_for_another_function():
    given = [
        TextNode(text=text, metadata={"work": work, "file_name": "all.txt"})
        for text, work in zip("abc", "xyx", strict=True)
    ]
    cache = IngestionCache()

    def stamped(stamp: StampPositions) -> list[int]:
        return _stamps(IngestionPipeline(transformations=[stamp], cache=cache).run(nodes=given))

    # The same code with another closure, and other code.
    assert stamped(_by("file_name")) == [0, 1, 2]
    assert stamped(_by("work")) == [0, 0, 1]
    assert stamped(StampPositions(source_key=lambda chunk: chunk.text)) == [0, 0, 0]
    # The same function, of which nobody can tell whether it still does the same.
    works = {"x": "x", "y": "y"}
    by_works = StampPositions(source_key=lambda chunk: works[chunk.metadata["work"]])
    assert stamped(by_works) == [0, 0, 1]
    works["y"] = "x"
    assert stamped(by_works) == [0, 1, 2]


def test_what_comes_after_a_function_is_cached():
    class Counting(TransformComponent):
        calls: int = Field(default=0, exclude=True)

        def __call__(self, nodes: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return nodes

    after = Counting()
    pipeline = IngestionPipeline(transformations=[_by("work"), after], cache=IngestionCache())
    for _ in range(2):
        pipeline.run(nodes=[TextNode(text="a", metadata={"work": "x"}, id_="a")])
    assert after.calls == 1
