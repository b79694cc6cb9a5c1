import pytest

from oprag.compare.experiment import _PROVIDERS
from oprag.compare.providers.chat_models import load_chat_model
from oprag.errors import OptionError
from tests.cli import provider


def load(name, **settings):
    return load_chat_model(name, settings, feature="A test")


def test_a_setting_that_the_model_would_leave_aside_in_silence_is_refused(monkeypatch):
    provider.install(monkeypatch)
    with pytest.raises(OptionError, match=r"unknown setting of groq:cranes 'max_token'; did you mean 'max_tokens'\?"):
        load("groq:cranes", max_token=3)
    with pytest.raises(OptionError, match=r"unknown setting of groq:cranes 'zzz'; expected one of .*, max_tokens, "):
        load("groq:cranes", zzz=3)


def test_names_of_providers_are_those_that_langchain_knows():
    chat = pytest.importorskip("langchain.chat_models.base")
    embeddings = pytest.importorskip("langchain.embeddings.base")
    if not hasattr(chat, "_BUILTIN_PROVIDERS"):
        pytest.skip("the oldest supported versions of LangChain do not list them under this name")
    # One that is missing would be refused in an experiment file.
    assert {*chat._BUILTIN_PROVIDERS, *embeddings._BUILTIN_PROVIDERS} - {"litellm", "huggingface"} <= _PROVIDERS
