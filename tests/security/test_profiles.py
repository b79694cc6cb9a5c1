"""A profile is data: whoever writes one chooses options, and never which code runs or what is fetched."""

import subprocess
import sys

import pytest

from oprag.errors import OptionError
from oprag.methods.profile import read_profile

LOAD = """
import sys
from oprag.methods.profile import read_profile
try:
    read_profile(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


def profile(folder, counter):
    path = folder / "oprag.toml"
    path.write_text(f'format = 1\n[context]\ncount_tokens = "{counter}"\n')
    return path


@pytest.mark.process
def test_code_beside_a_tokenizer_is_not_run_even_if_somebody_would_say_yes(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}')
    (model / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}'
    )
    (model / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "from transformers import PretrainedConfig, PreTrainedTokenizer\n"
        "class Config(PretrainedConfig): model_type = 'evil'\n"
        "class Evil(PreTrainedTokenizer): pass\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", LOAD, str(profile(tmp_path, f"huggingface:{model}"))],
        input="y\n" * 9,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PYTHONPATH": ":".join(sys.path), "HF_HOME": str(tmp_path / "hub")},
    ).stdout
    assert not (tmp_path / "ran").exists()
    assert "[y/N]" not in said
    assert said.startswith("OptionError oprag.toml: context: count_tokens: the tokenizer ")


@pytest.mark.parametrize(
    "name", ["gpt2", "openai/clip", "./missing", "~nobody/model", "http://localhost/x", "a\\u0000b", "a" * 5_000]
)
def test_names_of_the_hub_are_not_fetched(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match="is not a local folder or file"):
        read_profile(profile(tmp_path, f"huggingface:{name}"))


@pytest.mark.parametrize(
    "counter",
    ["os:system", "builtins:exec", "subprocess:getoutput", "local:system", "words:len", "Huggingface:gpt2", "evil:run"],
)
def test_a_function_is_never_looked_for(tmp_path, monkeypatch, counter):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(OptionError, match="count_tokens: a token counter must be one of"):
        read_profile(profile(tmp_path, counter))
    assert "evil" not in sys.modules
