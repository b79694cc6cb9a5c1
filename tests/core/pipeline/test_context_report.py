import json

import numpy as np

from oprag import build_context
from oprag.pipeline.context_report import METADATA_KEY, common_metadata, passage_to_dict
from tests.helpers import cut, hit, prose

TEXT = prose(60)


def test_a_passage_is_told_by_its_spans_and_chunks():
    (passage,) = build_context(cut(TEXT, [(40, 80), (0, 50)], page=3)).passages
    data = json.loads(json.dumps(passage_to_dict(passage)))
    assert data["source"] == "book"
    assert data["spans"] == [{"start": 0, "end": 80, "page": 3}]
    assert [(chunk["rank"], chunk["span"]["start"]) for chunk in data["chunks"]] == [(1, 0), (0, 40)]
    assert METADATA_KEY == "oprag"


def test_the_metadata_of_a_passage_are_those_that_all_its_chunks_share():
    chunks = [hit("a", 0, page=1, author="Ada", tags=["x"]), hit("b", 1, page=2, author="Ada", tags=["x"], extra=1)]
    assert common_metadata(chunks) == {"source": "book", "author": "Ada", "tags": ["x"]}
    assert common_metadata(chunks[:1]) == dict(chunks[0].metadata)


def test_a_value_that_cannot_be_compared_is_shared_when_it_is_the_same_object():
    vector = np.ones(3)
    chunks = [hit("a", 0, v=vector, w=np.ones(3)), hit("b", 1, v=vector, w=np.ones(3))]
    assert list(common_metadata(chunks)) == ["source", "v"]


def test_none_is_a_value_that_a_chunk_without_the_key_does_not_share():
    assert common_metadata([hit("a", 0, page=None), hit("b", 1)]) == {"source": "book"}
