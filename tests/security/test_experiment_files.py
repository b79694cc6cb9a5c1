"""Experiment files are data until their author is trusted.

An attacker controls the file and the folder around it. Without trust nothing that it names is imported, called, sent
or read outside that folder, by `--plan` either; and with trust no key leaves that the file does not name.
"""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.compare import Experiment, compare
from oprag.compare.data.files import is_within
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.errors import ExperimentError, InputFileError, OptionError, UntrustedExperimentError
from tests.cli import provider
from tests.compare.folders import model, write_data, write_experiment

GRID = 'method = "stuff"\nk = 2'
FOREIGN = "https://evil.example/v1"
EVIL = "raise SystemExit('imported')"
COMMAND = [sys.executable, "-c", "from oprag.cli import main; main()", "compare"]


@pytest.fixture(autouse=True)
def _evil_modules(tmp_path_factory, monkeypatch):
    """Modules that Python would find, under names of their own and under those of providers."""
    folder = tmp_path_factory.mktemp("modules")
    for name in ("evil", "mistralai", "local", "huggingface"):
        (folder / f"{name}.py").write_text(EVIL)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text(EVIL)
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def groq(monkeypatch):
    provider.install(monkeypatch)
    monkeypatch.setenv("GROQ_API_KEY", "a-key-of-groq")
    return provider.ChatGroq


def needs_of(path):
    """The parts that need trust; the file is refused."""
    with pytest.raises(UntrustedExperimentError) as caught:
        Experiment.from_file(path)
    for need in caught.value.needs:
        assert f"{need.place} = " in str(caught.value)
    assert caught.value.needs
    return [need.place for need in caught.value.needs]


def table(kind, lines):
    return f"[{kind}.x]\n{lines}"


UNTRUSTED = {
    # Functions, wherever there is a name.
    'count_tokens = "os:system"': ["count_tokens"],
    'count_tokens = "package.inner:f"': ["count_tokens"],
    'count_tokens = "huggingface:gpt2"': ["count_tokens"],
    'metrics = ["token_f1", "os:system", "rouge_l", "evil:make"]': ["metrics[1]", "metrics[3]"],
    'score_embedder = "evil:make"': ["score_embedder"],
    '[score_embedder]\nuse = "local"\ntokenizer = "evil:make"': ["score_embedder.tokenizer"],
    table("models", 'use = "os:system"\ncommand = "touch ran"'): ["models.x.use"],
    table("models", 'use = "Mistralai:make"'): ["models.x.use"],
    table("models", 'use = "mistralai.inner:make"'): ["models.x.use"],
    '[models]\nx = "evil:make"\ny = "local"\nz = "package.inner:f"': ["models.x", "models.z"],
    table("embedders", 'use = "subprocess:getoutput"\ncmd = "touch ran"'): ["embedders.x.use"],
    table("embedders", 'use = "groq:embed"'): ["embedders.x.use"],
    table("stores", 'use = "os:system"'): ["stores.x"],
    '[stores]\nx = "evil:make"': ["stores.x"],
    # Weights and code of models, from files or the hub.
    table("models", 'use = "transformers:gpt2"'): ["models.x.use"],
    table("models", 'use = "gguf:model.gguf"'): ["models.x.use"],
    table("models", 'use = "huggingface:gpt2"'): ["models.x.use"],
    table("embedders", 'use = "huggingface:model"\nmodel_kwargs = {trust_remote_code = true}'): [
        "embedders.x.use",
        "embedders.x.model_kwargs",
    ],
    # Addresses, keys, and all settings that are not known.
    table("models", f'use = "openai:gpt"\nbase_url = "{FOREIGN}"'): ["models.x.base_url"],
    table("models", 'use = "openai:gpt"\nbase_url = "http://localhost:1/v1"'): ["models.x.base_url"],
    table("models", 'use = "openai:gpt"\nbase_url = "https://api.openai.com@evil.example/v1"'): ["models.x.base_url"],
    table("models", 'use = "openai:gpt"\nbase_url = "https://api.openai.com:8443/v1"'): ["models.x.base_url"],
    table("models", 'use = "openai:gpt"\nbase_url = "https://api.openai.com/v1?to=x"'): ["models.x.base_url"],
    table("models", 'use = "groq:m"\nbase_url = "https://api.openai.com/v1"'): ["models.x.base_url"],
    table("models", f'use = "openai:gpt"\nopenai_proxy = "{FOREIGN}"'): ["models.x.openai_proxy"],
    table("models", f'use = "openai:gpt"\nopenai_api_base = "{FOREIGN}"'): ["models.x.openai_api_base"],
    table("models", 'use = "openai:gpt"\napi_key_env = "AWS_SECRET"'): ["models.x.api_key_env"],
    table("models", 'use = "openai:gpt"\nmodel_provider = "litellm"'): ["models.x.model_provider"],
    table("models", 'use = "openai:gpt"\nmodel_kwargs = {a = 1}'): ["models.x.model_kwargs"],
    table("models", 'use = "openai:gpt"\ndefault_headers = {a = "b"}'): ["models.x.default_headers"],
    table("models", 'use = "openai:gpt"\nreasoning = {a = {b = 1}}'): ["models.x.reasoning"],
    table("models", 'use = "openai:gpt"\ncache = true'): ["models.x.cache"],
    # Keys of embedders are settings of a model's client.
    table("models", 'use = "openai:gpt"\ntokenizer = "words"\npaid = true'): [
        "models.x.tokenizer",
        "models.x.paid",
    ],
    table("models", 'use = "litellm:openai/gpt"'): ["models.x.use"],
    table("models", 'use = "ollama:http://evil.example/m"'): ["models.x.use"],
    table("embedders", f'use = "openai:e"\nbase_url = "{FOREIGN}"'): ["embedders.x.base_url"],
    table("embedders", 'use = "openai:e"\npaid = false'): ["embedders.x.paid"],
}


@pytest.mark.parametrize("lines", UNTRUSTED)
def test_what_is_not_known_to_be_harmless_needs_trust(tmp_path, lines):
    top, tables = ([], [lines]) if lines.startswith("[") else ([lines], [])
    path = write_experiment(tmp_path, GRID, *tables)
    path.write_text("\n".join([*top, path.read_text()]))
    assert needs_of(path) == UNTRUSTED[lines]
    assert not {"evil", "mistralai", "package", "huggingface"} & {*sys.modules}
    with pytest.raises(UntrustedExperimentError):
        compare(path)


@pytest.mark.parametrize(
    "lines",
    [
        '[models]\nx = "local"\ny = "mistralai:make"\nz = "gpt-5-mini"',
        '[models]\nx = "gguf:local"',
        table(
            "models", 'use = "openai:gpt"\nbase_url = "https://api.openai.com/v1"\ntemperature = 0\nstop = ["a://b"]'
        ),
        table("embedders", 'use = "mistralai:make"\nquestion_prefix = "see https://x: "\ndimensions = 64'),
        "[embedders]\nx = 'local'\n[prices.x]\ninput = 1\noutput = 1\n[models]\nx = 'local'",
    ],
)
def test_names_of_ours_and_of_providers_come_first_and_need_no_trust(tmp_path, lines):
    Experiment.from_file(
        write_experiment(tmp_path, 'method = "context_only"\nk = 2\nstore = ["index", "chroma"]', lines)
    )
    assert not {"evil", "mistralai", "local"} & {*sys.modules}


def test_a_store_of_the_grid_is_no_function(tmp_path):
    with pytest.raises(ExperimentError, match="unknown store 'os:system'"):
        Experiment.from_file(write_experiment(tmp_path, f'{GRID}\nstore = "os:system"', model()), trust=True)


def test_the_message_names_everything_once_and_cannot_be_forged(tmp_path):
    many = "\n".join(f'm{number} = "evil:f{number}"' for number in range(50))
    words = r'"a:b\n  nothing else needs trust\u001b[2K\u202e"'
    forged = f"{table('stores', f'use = {words}')}\n[stores.{words}]\nuse = 'a:b'"
    secret = table("models.y", 'use = "openai:gpt"\nother = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"')
    login = table("embedders", 'use = "openai:e"\nbase_url = "https://me:hunter22@evil.example/v1?key=hunter22"')
    path = write_experiment(tmp_path, GRID, f"[models]\n{many}", secret.replace(".x]", "]"), forged, login)
    with pytest.raises(UntrustedExperimentError) as caught:
        Experiment.from_file(path)
    message = str(caught.value)
    assert "models.m0 = 'evil:f0': runs Python code, or is a provider that oprag does not know" in message
    assert "and 24 more" in message
    assert len(caught.value.needs) == 54
    whole = message + "".join(map(str, caught.value.needs))
    assert "https://evil.example" in whole
    assert "--trust" in message
    for wrong in ("\n  nothing else", "\x1b", "\u202e", "hunter22", "abcdefghij"):
        assert wrong not in whole


def test_a_file_that_is_invalid_is_refused_before_anyone_is_asked(tmp_path):
    path = write_experiment(tmp_path, GRID, model())
    with pytest.raises(ExperimentError, match="max_concurrency must be an integer >= 1"):
        Experiment.from_file(path, trust=lambda _: pytest.fail("asked"), changes={"max_concurrency": 0})


# The command line


RUNS = f"[models.x]\nuse = {json.dumps('os:system')}\ncommand = "


def planted(tmp_path):
    """An experiment that would make a file, and the file."""
    ran = tmp_path / "ran"
    return write_experiment(tmp_path, GRID, f"{RUNS}{json.dumps(f'touch {ran}')}"), ran


def test_a_list_in_place_of_a_table_is_not_shown(tmp_path):
    lines = 'password = "hunter22"\n' + "\n".join(f"k{number} = {number}" for number in range(1_000))
    with pytest.raises(ExperimentError) as caught:
        Experiment.from_file(write_experiment(tmp_path, GRID, f"[[models.x]]\n{lines}"))
    assert (
        str(caught.value)
        == 'harbour.toml: models.x must contain the key use with a name, such as use = "local", got list'
    )


@pytest.mark.parametrize("options", [["--plan"], ["--yes"], ["--measure"], ["--plan", "--json"]])
def test_nothing_runs_without_trust_and_nobody_is_asked_without_a_terminal(tmp_path, options):
    path, ran = planted(tmp_path)
    result = CliRunner().invoke(app, ["compare", str(path), *options], input="y\ny\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "models.x.use = 'os:system': runs Python code" in result.stderr
    assert not ran.exists()
    assert not path.with_suffix(".db").exists()


def on_terminal(path, answer):
    """The output and the status of a plan on a terminal, whose reader answers."""
    here, there = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [*COMMAND, str(path), "--plan"], stdin=there, stdout=there, stderr=there, env=environment, close_fds=True
    )
    os.close(there)
    os.write(here, answer)
    shown = b""
    try:
        while piece := os.read(here, 65_536):
            shown += piece
    except OSError:
        pass  # the other side has closed it
    os.close(here)
    return shown.decode(), process.wait(60)


def test_on_a_terminal_the_reader_is_asked(tmp_path):
    path, ran = planted(tmp_path)
    shown, status = on_terminal(path, b"n\n")
    assert "models.x.use = 'os:system': runs Python code" in shown
    assert "Do you trust its author? [y/N]" in shown
    assert (status, ran.exists()) == (1, False)


def test_in_python_a_function_may_decide(tmp_path):
    path = write_experiment(tmp_path, GRID, model())
    with pytest.raises(UntrustedExperimentError):
        Experiment.from_file(path, trust=lambda _: False)
    assert Experiment.from_file(path, trust=lambda needs: [need.place for need in needs] == ["models.quick.use"]).models
    # Only a plain yes counts: an async function gives something that is true.
    no: Any = "no"
    with pytest.raises(UntrustedExperimentError):
        Experiment.from_file(path, trust=lambda _: no)
    with pytest.raises(OptionError, match="trust must be True, False or a function, got 'no'"):
        Experiment.from_file(path, trust=no)
    # It is not asked where nothing needs trust.
    assert Experiment.from_file(
        write_experiment(tmp_path, 'method = "context_only"\nk = 2'), trust=lambda _: False
    ).name


# Files


def reading(tmp_path, path, documents=None):
    """An experiment file in a folder of its own, beside something secret."""
    folder = tmp_path / "sent"
    write_data(folder / "data")
    (tmp_path / "secret.md").write_text("hunter22")
    lines = [f"path = {json.dumps(str(path))}"]
    lines += [] if documents is None else [f"documents = {json.dumps(str(documents))}"]
    file = folder / "x.toml"
    file.write_text('name = "x"\n[data.d]\n' + "\n".join(lines) + '\n[grid]\nmethod = "context_only"\nk = 2\n')
    return file


@pytest.mark.parametrize("place", ["..", "../secret.md", "{}/secret.md", "data/../../secret.md", ".env", ".x/q.jsonl"])
def test_data_elsewhere_needs_trust(tmp_path, place):
    path = place.format(tmp_path)
    assert needs_of(reading(tmp_path, path)) == ["data.d.path"]
    assert needs_of(reading(tmp_path, "data", documents=path)) == ["data.d.documents"]


def test_links_are_followed_before_it_is_decided(tmp_path):
    file = reading(tmp_path, "link", documents="linked")
    file.with_name("link").symlink_to(tmp_path / "secret.md")
    file.with_name("linked").symlink_to(tmp_path)
    assert needs_of(file) == ["data.d.path", "data.d.documents"]
    # A link that stays in the folder leads nowhere else.
    file = reading(tmp_path, "here")
    file.with_name("here").symlink_to("data")
    assert Experiment.from_file(file).data["d"].questions


@pytest.mark.parametrize("name", ["out.md", ".env", ".hidden/x.md"])
def test_records_cannot_name_what_the_file_cannot(tmp_path, name):
    file = reading(tmp_path, "data")
    data = file.parent / "data"
    (data / "out.md").symlink_to(tmp_path / "secret.md")
    (data / ".env").write_text("KEY=hunter22")
    (data / ".hidden").mkdir()
    (data / ".hidden" / "x.md").write_text("hunter22")
    (data / "questions.jsonl").write_text(json.dumps({"question": "What?", "path": name}))
    with pytest.raises((ExperimentError, InputFileError, ValueError)) as caught:
        Experiment.from_file(file)
    assert "hunter22" not in str(caught.value)
    linked = reading(tmp_path, "moved")
    (linked.parent / "moved").mkdir()
    (linked.parent / "moved" / "questions.jsonl").symlink_to(tmp_path / "secret.md")
    with pytest.raises(InputFileError, match="is outside the folder"):
        Experiment.from_file(linked)


@pytest.mark.parametrize("path", [r"\\evil\share\q.jsonl", "//evil/share/q.jsonl", r"\\?\UNC\evil\share", "D:q.jsonl"])
def test_the_host_of_a_share_of_windows_is_not_asked(path):
    folder: Any = PureWindowsPath(r"C:\sent")
    assert not is_within(folder, folder / path)


@pytest.mark.parametrize("option", ["path", "documents"])
def test_a_path_that_the_system_refuses_is_an_error_of_ours(tmp_path, option):
    places = {"path": "data", "documents": None, option: "x" * 5_000}
    with pytest.raises(InputFileError, match="cannot read"):
        Experiment.from_file(reading(tmp_path, **places))


def test_an_experiment_of_the_same_folder_may_be_read_from_anywhere(tmp_path, monkeypatch):
    file = reading(tmp_path, "data")
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    monkeypatch.chdir(tmp_path)
    for path in (Path("sent/x.toml"), link / "x.toml", file):
        assert Experiment.from_file(path).data["d"].questions


# Keys and money, of trusted files too


def test_no_key_of_the_environment_goes_to_another_host(groq, monkeypatch):
    monkeypatch.setenv("MY_KEY", "a-key-for-there")
    ModelSpec("groq:cranes", base_url=FOREIGN).open()
    ModelSpec("groq:cranes", api_key_env="MY_KEY", base_url=FOREIGN).open()
    ModelSpec("groq:cranes", base_url="https://api.groq.com/").open()
    ModelSpec("groq:cranes").open()
    # Where none is given, the client looks for the key of its provider itself.
    assert [one.api_key for one in groq.made] == ["-", "a-key-for-there", None, None]


def test_a_provider_among_the_settings_counts_and_a_key_under_its_long_name_too(groq, monkeypatch):
    class ChatOpenAI(provider.ChatGroq):
        openai_api_key: str | None = None
        stream_usage: bool = False

    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-openai")
    monkeypatch.setitem(sys.modules, "langchain_openai", SimpleNamespace(ChatOpenAI=ChatOpenAI))
    there = {"base_url": FOREIGN}
    ModelSpec("openai:cranes", **there, openai_api_key="mine").open()
    ModelSpec("cranes", **there, model_provider="openai").open()
    ModelSpec("openai:cranes", base_url="https://api.openai.com/v1", model_provider="groq").open()
    assert [one.api_key for one in groq.made] == [None, "-", "-"]
    with pytest.raises(ExperimentError, match="could send keys"):
        ModelSpec("openai:cranes", endpoint_url=FOREIGN, model_provider="bedrock").open()


def test_clients_that_would_send_more_are_refused(groq, monkeypatch):
    def refusal(name, **given):
        with pytest.raises(ExperimentError) as caught:
            ModelSpec(name, **given).open()
        assert "hunter22" not in str(caught.value)
        return str(caught.value)

    there = {"base_url": FOREIGN}
    assert "api_key_env: the environment variable 'NONE' is not set" in refusal("groq:cranes", api_key_env="NONE")
    assert "could send keys" in refusal("bedrock:cranes", endpoint_url=FOREIGN, api_key_env="HOME")
    assert "could send keys" in refusal("groq", proxies={"https": "evil.example"})
    monkeypatch.setenv("GROQ_CUSTOM_HEADERS", "Authorization: hunter22")
    assert "unset it" in refusal("groq:cranes", **there)
    monkeypatch.setenv("OLLAMA_API_KEY", "hunter22")
    assert "api_key_env = 'OLLAMA_API_KEY'" in refusal("ollama:cranes", **there)
    assert "already contain a key" in refusal("groq:cranes", api_key="hunter22", api_key_env="HOME")
    with pytest.raises(ExperimentError, match="api_key_env is only valid with PROVIDER:MODEL"):
        EmbedderSpec("local", api_key_env="HOME")
    assert groq.made == []


@pytest.mark.parametrize(
    "lines",
    [
        f'use = "openai:x"\nbase_url = "{FOREIGN}"\napi_key_env = "HOME"',
        f'use = "openai:x"\nmodel_provider = "bedrock"\nbase_url = "{FOREIGN}"',
        f'use = "a:b"\nbase_url = "{FOREIGN}"',
    ],
)
def test_a_plan_says_that_no_key_is_sent_only_where_that_is_known(tmp_path, lines):
    path = write_experiment(tmp_path, GRID, table("models", lines))
    shown = CliRunner().invoke(app, ["compare", "--trust", str(path), "--plan"]).stdout
    assert "to https://evil.example\n" in shown


@pytest.mark.parametrize("price", ["", "[prices.x]\ninput = 0\noutput = 0"])
def test_another_host_is_never_assumed_to_be_free(groq, tmp_path, price):
    path = write_experiment(tmp_path, GRID, table("models", f'use = "groq:cranes"\nbase_url = "{FOREIGN}"'), price)
    result = CliRunner().invoke(app, ["compare", "--trust", str(path)])
    assert result.exit_code == 2
    assert "tokens may cost money" in result.stderr
    assert "pass --yes" in result.stderr
    shown = CliRunner().invoke(app, ["compare", "--trust", str(path), "--plan"]).stdout
    assert "to https://evil.example (without an API key, since api_key_env is not set)" in shown
    assert groq.prompts == []
