import pickle

import pytest

from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec, with_name
from oprag.compare.validation import validated
from oprag.errors import ExperimentError

SETTINGS = {"temperature": 0, "base_url": "http://me:secret@host/v1", "model_kwargs": {"device": "cpu"}}


@pytest.mark.parametrize("kind", [ModelSpec, EmbedderSpec])
def test_a_table_and_arguments_say_the_same(kind):
    table = {"use": "openai:a", **SETTINGS}
    spec = validated(kind, with_name(table, "mine"), place="models.mine")
    assert spec == kind("openai:a", "mine", **SETTINGS) == kind.model_validate({"name": "mine", **table})
    assert spec.settings == SETTINGS
    assert validated(kind, with_name(spec, "other"), place="models.other") is spec
    assert validated(kind, with_name("openai:a", "mine"), place="models.mine") == kind("openai:a", "mine")
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("kind", [ModelSpec, EmbedderSpec])
def test_settings_are_not_shown(kind):
    spec = kind("openai:a", "mine", **SETTINGS, api_key="hunter22")
    assert "secret" not in f"{spec!r} {spec}"
    assert "hunter22" not in f"{spec!r} {spec}"
    with pytest.raises(ExperimentError) as caught:
        kind("openai:a", 3, api_key="hunter22")
    assert "hunter22" not in str(caught.value)
