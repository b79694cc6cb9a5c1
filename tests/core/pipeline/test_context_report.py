import numpy as np

from oprag.pipeline.context_report import common_metadata
from tests.helpers import hit


def test_a_value_that_cannot_be_compared_is_shared_when_it_is_the_same_object():
    vector = np.ones(3)
    chunks = [hit("a", 0, v=vector, w=np.ones(3)), hit("b", 1, v=vector, w=np.ones(3))]
    assert list(common_metadata(chunks)) == ["source", "v"]
