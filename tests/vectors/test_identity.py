import gc
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core.embeddings import MockEmbedding
from pydantic import BaseModel, SecretStr

from oprag.vectors import identity
from oprag.vectors.identity import identity_of

SECRET = "very-secret"


class Pooling(Enum):
    MEAN = "mean"
    LAST = "last"


class Remote(BaseModel):
    """The settings that embedding models of LangChain have."""

    model: str = "embed-3"
    dimensions: int | None = 256
    num_ctx: int = 2048
    query_prompt_for_retrieval: str = ""
    pooling: Pooling = Pooling.MEAN
    folder: Path = Path("models")
    stops: list[str] = []
    openai_api_key: SecretStr | None = SecretStr(SECRET)
    api_key: str = SECRET
    pat: str = SECRET
    volcano_ak: str = SECRET
    base_url: str | None = f"https://me:{SECRET}@host:8080/v1?token={SECRET}"
    default_headers: dict[str, str] = {"Authorization": SECRET}
    model_kwargs: dict[str, Any] = {"device": "cpu", "hf": SECRET, "top": 3}
    encode_kwargs: dict[str, Any] = {"normalize_embeddings": True}
    request_timeout: float = 3.0
    chunk_size: int = 1000
    normalize: bool = True
    client: Any = object()


class Plain:
    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


def test_the_name_says_which_model_it_is_and_no_secret():
    name, lasting = identity_of(Remote())
    assert lasting
    assert name.startswith("tests.vectors.test_identity.Remote(embed-3) ")
    assert SECRET not in name
    assert SECRET not in identity_of(Plain(model=f"https://me:{SECRET}@host/model?key={SECRET}")).name
    assert len(identity_of(Plain(model="x" * 10_000)).name) < 200


@pytest.mark.parametrize(
    "change",
    [
        {"model": "embed-4"},
        {"dimensions": 512},
        {"num_ctx": 4096},
        {"query_prompt_for_retrieval": "search: "},
        {"query_prompt_for_retrieval": "x" * 1_000},
        {"pooling": Pooling.LAST},
        {"folder": Path("others")},
        {"stops": ["the"]},
        {"base_url": "https://other/v1"},
        {"base_url": "https://host:8080/v1?model=b"},
        {"base_url": None},
        {"encode_kwargs": {"normalize_embeddings": False}},
        {"model_kwargs": {"device": "cpu", "top": 4}},
        {"normalize": False},
    ],
    ids=str,
)
def test_another_setting_is_another_model(change):
    assert identity_of(Remote(**change)) != identity_of(Remote())
    assert identity_of(Remote(**change)) == identity_of(Remote(**change))


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": "another"},
        {"openai_api_key": None},
        {"pat": "another"},
        {"request_timeout": 9.0},
        {"chunk_size": 5},
        {"default_headers": {}},
        {"client": None},
    ],
    ids=str,
)
def test_what_changes_no_vector_changes_no_name(change):
    assert identity_of(Remote(**change)) == identity_of(Remote())


def test_an_object_keeps_its_name_while_it_works():
    model: Any = Plain(model="a", calls=0, last="", seen=[])
    before = identity_of(model)
    model.calls, model.last = 7, "a private sentence"
    model.seen.append("another")
    assert identity_of(model) == before
    assert "private" not in identity_of(Plain(model="a", last="a private sentence")).name
    model.model = "b"
    assert identity_of(model) != before


def test_a_model_that_is_made_of_other_objects_has_a_number_for_this_process():
    first, second = Plain(model="a", encoder=object()), Plain(model="a", encoder=object())
    assert identity_of(first) == identity_of(first)
    assert identity_of(first) != identity_of(second)
    assert not identity_of(first).lasting


def test_a_size_alone_is_no_name():
    # Two encoders may well have one dimension.
    pairs = [
        (DeterministicFakeEmbedding(size=8), DeterministicFakeEmbedding(size=8)),
        (Plain(size=8), Plain(size=8)),
    ]
    for first, second in pairs:
        assert identity_of(first) == identity_of(first)
        assert identity_of(first) != identity_of(second)
        assert not identity_of(first).lasting
    assert identity_of(MockEmbedding(embed_dim=3)) != identity_of(MockEmbedding(embed_dim=4))


def test_a_number_is_never_used_again():
    names = {identity_of(Plain(calls=1)).name for _ in range(100)}
    # Not those of objects that are no more, whose places in memory are used again.
    assert len(names) == 100
    gc.collect()
    assert len(identity._known) < 100


def test_an_object_that_cannot_be_watched_keeps_its_number():
    class Slotted:
        __slots__ = ()

    model = Slotted()
    assert identity_of(model) == identity_of(model)
    assert identity_of(model) != identity_of(Slotted())
