import numpy as np

from oprag import DualEncoder, Embedder, LocalEmbedder
from tests.helpers import WordEmbedder


def test_a_dual_encoder_has_an_encoder_for_each_kind():
    embedder = DualEncoder("pair", question=lambda texts: [[1, 0]] * len(texts), document=lambda texts: [[0, 1]])
    np.testing.assert_array_equal(embedder.embed_questions(["a", "b"]), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(embedder.embed_documents(["a"]), [[0, 1]])
    assert embedder.embed_documents(["a"]).dtype == np.float32


def test_one_encoder_may_do_for_both():
    embedder = DualEncoder("one", lambda texts: [[len(text)] for text in texts])
    np.testing.assert_array_equal(embedder.embed_documents(["abc"]), embedder.embed_questions(["xyz"]))


def test_embedders_are_told_by_their_methods():
    assert isinstance(DualEncoder("x", list), Embedder)
    assert isinstance(WordEmbedder(), Embedder)
    assert isinstance(LocalEmbedder(), Embedder)
    assert not isinstance(object(), Embedder)
