import gc
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from llama_index.core.embeddings import MockEmbedding
from pydantic import BaseModel, PrivateAttr, SecretStr

from oprag.embedding import identity
from oprag.embedding.identity import identity_of
from tests.helpers import run_python

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
    add_eos_token: bool = False
    pooling_token: str = "cls"
    text_key: str = "text"
    organization: str | None = None
    prompts: dict[str, str] = {}
    kind: type = str
    client: Any = object()


class Plain:
    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


def test_the_name_says_which_model_it_is_and_no_secret():
    name, persistent = identity_of(Remote())
    assert persistent
    assert name.startswith("tests.core.embedding.test_identity.Remote(embed-3) ")
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
        {"add_eos_token": True},
        {"pooling_token": "last"},
        {"text_key": "body"},
        {"organization": "another"},
        {"default_headers": {"X-Model-Revision": "2"}},
        {"chunk_size": 5},
        {"prompts": {"query": "query: "}},
        {"kind": Path},
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
        {"default_headers": {}},
        {"default_headers": {"X-API-Key": "another"}},
        {"model_kwargs": {"device": "cuda", "token": "another", "hf": SECRET, "top": 3}},
        {"base_url": f"https://you:another@host:8080/v1?token={SECRET}&api-key=another"},
        {"client": None},
    ],
    ids=str,
)
def test_what_changes_no_vector_changes_no_name(change):
    assert identity_of(Remote(**change)) == identity_of(Remote())


def test_an_object_keeps_its_name_while_it_works():
    model: Any = Plain(model="a", calls=0, size=1, last="", seen=[], _known={}, client=None, inner=Plain(calls=0))
    before = identity_of(model)
    model.calls, model.size, model.last = 7, 2, "a private sentence"
    model.seen.append("another")
    model._known["a text"] = [1.0]
    model.client, model.inner.calls = object(), 7
    assert identity_of(model) == before
    assert "private" not in identity_of(Plain(model="a", last="a private sentence")).name
    model.model = "b"
    assert identity_of(model) != before


def test_an_embedder_that_is_loaded_with_its_first_text_keeps_its_name():
    class Lazy(Embeddings):
        def __init__(self, model: str) -> None:
            self.model = model

        def embed_documents(self, texts):
            self.dimension_of_tokens, self.loaded, self._cached = [2], object(), {"a": 1.0}
            return [[1.0, 2.0] for _ in texts]

        def embed_query(self, text):
            return self.embed_documents([text])[0]

    model = Lazy("a")
    before = identity_of(model)
    model.embed_query("a")
    assert identity_of(model) == before


@pytest.mark.parametrize("change", [{"size": 2}, {"seen": [2]}, {"inner": 2}, {"limit": None}], ids=str)
def test_other_values_count_when_an_object_is_first_seen(change):
    values: dict[str, Any] = {"model": "a", "size": 1, "seen": [1], "inner": 1, "limit": 3}
    assert identity_of(Plain(**values)) == identity_of(Plain(**values))
    assert identity_of(Plain(**values | change)) != identity_of(Plain(**values))


def test_a_model_that_is_made_of_other_objects_has_a_number_for_this_process():
    first, second = Plain(model="a", encoder=object()), Plain(model="a", encoder=object())
    assert identity_of(first) == identity_of(first)
    assert identity_of(first) != identity_of(second)
    assert not identity_of(first).persistent


def test_a_size_alone_is_no_name():
    # Two encoders may well have one dimension.
    pairs = [
        (DeterministicFakeEmbedding(size=8), DeterministicFakeEmbedding(size=8)),
        (Plain(size=8), Plain(size=8)),
    ]
    for first, second in pairs:
        assert identity_of(first) == identity_of(first)
        assert identity_of(first) != identity_of(second)
        assert not identity_of(first).persistent
    assert identity_of(MockEmbedding(embed_dim=3)) != identity_of(MockEmbedding(embed_dim=4))


def test_a_number_is_never_used_again():
    names = {identity_of(Plain(calls=1)).name for _ in range(100)}
    # Not those of objects that are no more, whose places in memory are used again.
    assert len(names) == 100
    gc.collect()
    assert len(identity._tokens._known) <= identity._REMEMBERED


def test_an_object_that_cannot_be_watched_keeps_its_number():
    class Slotted:
        __slots__ = ()

    model = Slotted()
    assert identity_of(model) == identity_of(model)
    assert identity_of(model) != identity_of(Slotted())


class Private(BaseModel):
    """A model of LlamaIndex keeps settings in private attributes as well."""

    model_name: str = "a"
    _engine: str = PrivateAttr("ada")
    _inner: Any = PrivateAttr(None)
    _client: Any = PrivateAttr(None)

    def __init__(self, engine: str = "ada", inner: Any = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._engine = engine
        self._inner = inner


class Wrapped(BaseModel):
    size: int = 3


def test_private_settings_count():
    assert identity_of(Private()) == identity_of(Private())
    assert identity_of(Private()).persistent
    assert len({identity_of(Private(engine=engine)).name for engine in ("ada", "babbage")}) == 2
    assert len({identity_of(Private(inner=Wrapped(size=size))).name for size in (3, 4, 4)}) == 2
    # Weights that are loaded say nothing about how they were loaded.
    assert not identity_of(Private(inner=object())).persistent


@dataclass(slots=True)
class InSlots(Embeddings):
    """Its base class has no slots, so it has attributes as well."""

    model: str = "a"
    size: int = 3

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0] * self.size for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0] * self.size


def test_settings_in_slots_count():
    assert identity_of(InSlots()) == identity_of(InSlots())
    assert identity_of(InSlots()).persistent
    assert identity_of(InSlots(size=4)) != identity_of(InSlots())


def test_a_setting_that_is_changed_later_makes_another_model():
    class Own:
        def __init__(self, model: str, prefix: str = "") -> None:
            self.model, self._prefix, self.calls = model, prefix, 0

    pydantic_model, own = Remote(), Own("a")
    before = identity_of(pydantic_model), identity_of(own)
    pydantic_model.dimensions, own._prefix, own.calls = 512, "query: ", 3
    assert identity_of(pydantic_model) == identity_of(Remote(dimensions=512)) != before[0]
    assert identity_of(own) != before[1]
    own._prefix = ""
    assert identity_of(own) == before[1]


def test_the_number_of_a_model_changes_with_its_settings():
    model: Any = Remote(prompts={}, client=None)
    model.encode_kwargs = {"made_of": object()}
    before = identity_of(model)
    assert not before.persistent
    model.dimensions = 512
    assert identity_of(model) != before
    model.dimensions = 256
    assert identity_of(model) == before


def test_where_a_client_sends_to_counts():
    class Client:
        def __init__(self, base_url: str) -> None:
            self.base_url = base_url

    def at(address: str, **settings: Any) -> str:
        return identity_of(Remote(client=Plain(_client=Client(address)), **settings)).name

    assert at("https://host/v1", base_url=None) == at(f"https://me:{SECRET}@host/v1/", base_url=None)
    assert at("https://host/v1", base_url=None) != at("https://other/v1", base_url=None)
    # A client that is made when it is first used makes no other model.
    model = Private(engine="https://host/v1")
    before = identity_of(model)
    model._client = Client("https://host/v1/")
    assert identity_of(model) == before
    # Nor does one for HTTP alone, which is told the address with each call.
    model._client = Client("")
    assert identity_of(model) == before


def test_an_object_that_contains_itself_has_a_number():
    settings: list[Any] = []
    settings.append(settings)
    model = Plain(model="a", settings=settings)
    assert not identity_of(model).persistent
    # Nobody can tell whether it is still the same.
    assert identity_of(model) != identity_of(model)


@pytest.mark.parametrize("kind", ["of a function", "of a script"])
def test_a_class_that_another_script_may_have_as_well_is_not_lasting(kind):
    class Local:
        model = "a"

    if kind == "of a script":
        Local.__qualname__, Local.__module__ = "Own", "__main__"
    assert identity_of(Local()) != identity_of(Local())
    assert not identity_of(Local()).persistent


@pytest.mark.process
def test_it_is_the_same_in_every_process():
    module = "tests.core.embedding.test_identity"
    code = f"from {module} import *; print(identity_of(Remote()).name, identity_of(Private()).name)"
    printed = {run_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert printed == {f"{identity_of(Remote()).name} {identity_of(Private()).name}\n"}
