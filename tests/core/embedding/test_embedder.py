import numpy as np

from oprag import DualEncoder


def test_one_encoder_may_do_for_both():
    embedder = DualEncoder("one", lambda texts: [[len(text)] for text in texts])
    np.testing.assert_array_equal(embedder.embed_documents(["abc"]), embedder.embed_questions(["xyz"]))
