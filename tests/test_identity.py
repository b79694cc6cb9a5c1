from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from llama_index.core.embeddings import MockEmbedding
from pydantic import BaseModel, SecretStr

from oprag.identity import identity_of


class Remote(BaseModel):
    """The settings that embedding models of LangChain have."""

    model: str = "embed-3"
    dimensions: int | None = 256
    openai_api_key: SecretStr | None = SecretStr("very-secret")
    api_key: str = "very-secret"
    base_url: str | None = "https://me:very-secret@host:8080/v1?token=very-secret"
    default_headers: dict[str, str] = {"Authorization": "very-secret"}
    model_kwargs: dict[str, Any] = {"device": "cpu", "token": "very-secret", "top": 3}
    encode_kwargs: dict[str, Any] = {"normalize_embeddings": True}
    request_timeout: float = 3.0
    chunk_size: int = 1000
    normalize: bool = True
    client: Any = object()
    calls: int = 0
    seen: list[str] = []


class Plain:
    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


def test_the_name_says_what_may_change_a_vector_and_no_secret():
    name, lasting = identity_of(Remote())
    assert lasting
    assert name == (
        "tests.test_identity.Remote(base_url='https://host:8080/v1', dimensions=256, "
        "encode_kwargs={'normalize_embeddings': True}, model='embed-3', model_kwargs={'device': 'cpu', 'top': 3}, "
        "normalize=True)"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"model": "embed-4"},
        {"dimensions": 512},
        {"base_url": "https://other/v1"},
        {"base_url": None},
        {"encode_kwargs": {"normalize_embeddings": False}},
        {"model_kwargs": {"device": "cpu", "top": 4}},
        {"normalize": False},
    ],
    ids=str,
)
def test_another_setting_is_another_model(change):
    assert identity_of(Remote(**change)) != identity_of(Remote())


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": "another"},
        {"openai_api_key": None},
        {"request_timeout": 9.0},
        {"chunk_size": 5},
        {"default_headers": {}},
        {"calls": 7},
        {"seen": ["a text"]},
        {"client": None},
    ],
    ids=str,
)
def test_what_changes_no_vector_changes_no_name(change):
    assert identity_of(Remote(**change)) == identity_of(Remote())


def test_models_of_the_frameworks_have_a_name():
    assert identity_of(DeterministicFakeEmbedding(size=8)).lasting
    assert identity_of(DeterministicFakeEmbedding(size=8)) != identity_of(DeterministicFakeEmbedding(size=9))
    assert identity_of(MockEmbedding(embed_dim=3)).lasting
    assert identity_of(MockEmbedding(embed_dim=3)) != identity_of(MockEmbedding(embed_dim=4))


def test_other_objects_are_named_by_what_they_say():
    assert identity_of(Plain(model_name="a", calls=1)) == identity_of(Plain(model_name="a", calls=2))
    assert identity_of(Plain(model_name="a")) != identity_of(Plain(model_name="b"))
    assert identity_of(Plain(model_name="a", base_url="http://[broken")).lasting


def test_a_model_that_does_not_say_what_it_is_has_a_number_for_this_process():
    first, second = Plain(model=object()), Plain(model=object())
    assert identity_of(first) == identity_of(first)
    assert identity_of(first) != identity_of(second)
    assert not identity_of(first).lasting
    names = set()
    for _ in range(100):
        names.add(identity_of(Plain(calls=1)).name)
    # Not those of objects that are no more, whose places in memory are used again.
    assert len(names) == 100


def test_an_object_that_cannot_be_watched_has_another_number_each_time():
    class Slotted:
        __slots__ = ()

    model = Slotted()
    assert identity_of(model) != identity_of(model)
