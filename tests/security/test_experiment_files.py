"""An experiment file is data.

An attacker controls the file and the folder around it. Nothing that it names is imported, called, sent elsewhere or
read outside that folder, by a plan either, and the key of a provider goes to no other server.
"""

import json
import socket
import sys
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.compare import Experiment, compare
from oprag.compare.data.files import is_within
from oprag.errors import ExperimentError, InputFileError
from tests.cli import provider
from tests.compare.folders import in_python, model, write_data, write_experiment
from tests.compare.providers.chat_server import serve

GRID = 'method = "stuff"\nk = 2'
CONTEXTS = 'method = "context_only"\nk = 2'
FOREIGN = "https://evil.example/v1"
ELSEWHERE = "base_url is only valid with openai or ollama, and for an address of this machine"
OUTSIDE = "is hidden, or is outside the folder"
EVIL = "raise SystemExit('imported')"


@pytest.fixture
def _watched(tmp_path_factory, monkeypatch):
    """Modules that Python would find, under names of their own and of providers; and no connection is made."""
    folder = tmp_path_factory.mktemp("modules")
    for name in ("evil", "mistralai", "local", "huggingface"):
        (folder / f"{name}.py").write_text(EVIL)
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text(EVIL)
    monkeypatch.syspath_prepend(folder)
    asked: list[Any] = []
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, lambda _, address: asked.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: asked.append(address))
    yield
    assert asked == []
    assert not {"evil", "mistralai", "local", "package", "huggingface"} & {*sys.modules}


def table(kind, lines):
    return f"[{kind}.x]\n{lines}"


def at(address, use="openai:gpt"):
    return table("models", f"use = {json.dumps(use)}\nbase_url = {json.dumps(address)}")


def check_refused(path, *words, kind: Any = ExperimentError):
    """A file is refused in Python and on the command line, in one line with these words and without a secret."""
    for read in (Experiment.from_file, compare):
        with pytest.raises(kind) as caught:
            read(path)
        for word in words:
            assert word in str(caught.value)
        assert "hunter22" not in str(caught.value)
    for command in (
        ["compare", str(path), "--plan"],
        ["compare", str(path), "--yes"],
    ):
        result = CliRunner().invoke(app, command, input="y\ny\n")
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.splitlines() == [f"Error: {caught.value}"]
    assert not list(path.parent.glob("*.db"))


REFUSED = {
    # Functions, wherever there is a name.
    'count_tokens = "os:system"': "count_tokens must be one of",
    'count_tokens = "package.inner:f"': "count_tokens must be one of",
    'count_tokens = "huggingface:gpt2"': "count_tokens must be one of",
    'metrics = ["token_f1", "os:system", "rouge_l", "evil:make"]': "unknown metric 'os:system'",
    'score_embedder = "evil:make"': "score_embedder must be local or PROVIDER:MODEL",
    '[score_embedder]\nuse = "local"\ntokenizer = "evil:make"': "score_embedder.tokenizer must be one of",
    '[score_embedder]\nuse = "local"\ntokenizer = "huggingface:gpt2"': "score_embedder.tokenizer must be one of",
    table("models", 'use = "os:system"\ncommand = "touch ran"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "Mistralai:make"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "mistralai.inner:make"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "mistralai: "'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "gpt-5-mini"'): "models.x must be local or PROVIDER:MODEL",
    '[models]\ny = "local"\nx = "evil:make"': "models.x must be local or PROVIDER:MODEL",
    table(
        "embedders", 'use = "subprocess:getoutput"\ncmd = "touch ran"'
    ): "embedders.x must be local or PROVIDER:MODEL",
    table("stores", 'use = "os:system"'): "stores.x must be callable",
    '[stores]\nx = "evil:make"': "stores.x must be callable",
    # Weights and code of models, from files or the hub.
    table("models", 'use = "transformers:gpt2"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "gguf:model.gguf"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "huggingface:gpt2"'): "models.x must be local or PROVIDER:MODEL",
    table("embedders", 'use = "huggingface:model"'): "embedders.x must be local or PROVIDER:MODEL",
    table(
        "embedders", 'use = "openai:e"\nmodel_kwargs = {trust_remote_code = true}'
    ): "embedders.x.model_kwargs is not",
    table("embedders", 'use = "openai:e"\ntrust_remote_code = true'): "embedders.x.trust_remote_code is not",
    # Other hosts, in every disguise.
    at(FOREIGN): f"models.x.{ELSEWHERE}",
    at(FOREIGN, "ollama:m"): f"models.x.{ELSEWHERE}; for others, set",
    at("https://api.openai.com/v1"): f"models.x.{ELSEWHERE}; for others, set",
    at("https://api.openai.com@evil.example/v1"): "models.x.base_url",
    at("https://me:hunter22@evil.example/v1?key=hunter22"): "models.x.base_url",
    at("http://localhost:1/v1", "groq:m"): "models.x.base_url",
    at("http://localhost:hunter22@evil.example"): "models.x.base_url",
    at("http://me:hunter22@localhost:1/v1"): "models.x.base_url",
    at("http://localhost.evil.example/v1"): "models.x.base_url",
    at("http://127.0.0.1.evil.example/v1"): "models.x.base_url",
    at("http://localhost\\@evil.example"): "models.x.base_url",
    at("http://localhost\n.evil.example"): "models.x.base_url",
    at("http://evil.example/?http://localhost"): "models.x.base_url",
    at("http://evil.example#@localhost"): "models.x.base_url",
    at("http://[::ffff:9.9.9.9]/v1"): "models.x.base_url",
    at("http://[localhost"): "models.x.base_url",
    at("http://169.254.169.254/v1"): "models.x.base_url",
    at("http://0.0.0.0/v1"): "models.x.base_url",
    at("http://localhost:99999999/v1"): "models.x.base_url",
    at("file://localhost/etc/passwd"): "models.x.base_url",
    at("//localhost/v1"): "models.x.base_url",
    at(["http://localhost:1"]): "models.x.base_url",
    table("models", 'use = "ollama:http://evil.example/m"'): "models.x must be local or PROVIDER:MODEL",
    table("models", 'use = "litellm:openai/gpt"'): "models.x must be local or PROVIDER:MODEL",
    table("models", f'use = "openai:gpt"\nopenai_proxy = "{FOREIGN}"'): "models.x.openai_proxy is not",
    table("models", f'use = "openai:gpt"\nopenai_api_base = "{FOREIGN}"'): "models.x.openai_api_base is not",
    table("models", f'use = "bedrock:m"\nendpoint_url = "{FOREIGN}"'): "models.x.endpoint_url is not",
    table("models", 'use = "openai:gpt"\nproxies = {https = "evil.example"}'): "models.x.proxies is not",
    table("embedders", f'use = "openai:e"\nbase_url = "{FOREIGN}"'): "embedders.x.base_url",
    f'[score_embedder]\nuse = "openai:e"\nbase_url = "{FOREIGN}"': "score_embedder.base_url",
    # Keys, and all settings that are not known.
    table("models", 'use = "openai:gpt"\napi_key = "hunter22"'): "models.x.api_key is not",
    table("models", 'use = "openai:gpt"\napi_key_env = "AWS_SECRET"'): "models.x.api_key_env is not",
    table("models", 'use = "openai:gpt"\nmodel_provider = "litellm"'): "models.x.model_provider is not",
    table("models", 'use = "openai:gpt"\nmodel_kwargs = {a = 1}'): "models.x.model_kwargs is not",
    table("models", 'use = "openai:gpt"\ndefault_headers = {a = "hunter22"}'): "models.x.default_headers is not",
    table("models", 'use = "openai:gpt"\nreasoning = {a = {b = 1}}'): "models.x.reasoning is not",
    table("models", 'use = "openai:gpt"\ncache = true'): "models.x.cache is not",
    # Settings of embedders are not known to be harmless for a model.
    table("models", 'use = "openai:gpt"\ntokenizer = "words"'): "models.x.tokenizer is not",
    table("models", 'use = "openai:gpt"\npaid = true'): "models.x.paid is not",
    # A plan does not use embedders that may cost money.
    table("embedders", 'use = "openai:e"\npaid = false'): "embedders.x.paid",
    f'{GRID}\nstore = "os:system"': "unknown store 'os:system'",
}


@pytest.mark.usefixtures("_watched")
@pytest.mark.parametrize("lines", REFUSED)
def test_what_is_not_data_is_refused(tmp_path, lines):
    tables, grid = ([lines], CONTEXTS) if lines.startswith("[") else ([], CONTEXTS)
    grid = lines if lines.startswith(GRID) else grid
    path = write_experiment(tmp_path, grid, *tables)
    if not tables and grid == CONTEXTS:
        path.write_text(f"{lines}\n{path.read_text()}")
    check_refused(path, f"harbour.toml: {REFUSED[lines]}" if "store =" not in lines else REFUSED[lines])


@pytest.mark.usefixtures("_watched")
@pytest.mark.parametrize(
    "lines",
    [
        '[models]\nx = "local"\ny = "mistralai:make"',
        table("models", 'use = "openai:gpt"\ntemperature = 0\nstop = ["a://b"]\nreasoning = {effort = "low"}'),
        table("embedders", 'use = "mistralai:make"\nquestion_prefix = "see https://x: "\ndimensions = 64\npaid = true'),
        *(at(f"http://{host}/v1") for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "127.9.9.9", "[::1]:1")),
        at("https://localhost:1", "ollama:m"),
    ],
)
def test_names_of_ours_and_of_providers_come_first_and_are_data(tmp_path, lines):
    path = write_experiment(tmp_path, f'{CONTEXTS}\nstore = ["index", "in_memory"]', lines)
    assert Experiment.from_file(path).name == "harbour"
    assert CliRunner().invoke(app, ["compare", str(path), "--plan"]).exit_code == 0


@pytest.mark.usefixtures("_watched")
def test_a_message_cannot_be_forged(tmp_path):
    words = r'"a:b\n  nothing else is refused\u001b[2K\u202e"'
    for lines in (table("models", f"use = {words}"), f"[models.{words}]\nuse = 'a:b'", f"[stores]\n{words} = 'a:b'"):
        check_refused(write_experiment(tmp_path, GRID, lines))


@pytest.mark.usefixtures("_watched")
def test_a_list_in_place_of_a_table_is_not_shown(tmp_path):
    lines = 'password = "hunter22"\n' + "\n".join(f"k{number} = {number}" for number in range(1_000))
    check_refused(
        write_experiment(tmp_path, GRID, f"[[models.x]]\n{lines}"),
        'harbour.toml: models.x must contain the key use with a name, such as use = "local", got list',
    )


# Files


def reading(tmp_path, path, documents=None):
    """An experiment file in a folder of its own, beside something secret."""
    folder = tmp_path / "sent"
    write_data(folder / "data")
    (tmp_path / "secret.md").write_text("hunter22")
    lines = [f"path = {json.dumps(str(path))}"]
    lines += [] if documents is None else [f"documents = {json.dumps(str(documents))}"]
    file = folder / "x.toml"
    file.write_text('name = "x"\n[data.d]\n' + "\n".join(lines) + f"\n[grid]\n{CONTEXTS}\n")
    return file


@pytest.mark.parametrize("place", ["..", "../secret.md", "{}/secret.md", "data/../../secret.md", ".env", ".x/q.jsonl"])
def test_data_elsewhere_is_refused(tmp_path, place):
    path = place.format(tmp_path)
    check_refused(reading(tmp_path, path), OUTSIDE, kind=InputFileError)
    check_refused(reading(tmp_path, "data", documents=path), OUTSIDE, kind=InputFileError)


def test_links_are_followed_before_it_is_decided(tmp_path):
    for options in (("link", None), ("data", "linked")):
        file = reading(tmp_path, *options)
        file.with_name("link").unlink(missing_ok=True)
        file.with_name("link").symlink_to(tmp_path / "secret.md")
        file.with_name("linked").unlink(missing_ok=True)
        file.with_name("linked").symlink_to(tmp_path)
        check_refused(file, OUTSIDE, kind=InputFileError)
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
    check_refused(linked, "is outside the folder", kind=InputFileError)


@pytest.mark.parametrize("path", [r"\\evil\share\q.jsonl", "//evil/share/q.jsonl", r"\\?\UNC\evil\share", "D:q.jsonl"])
def test_the_host_of_a_share_of_windows_is_not_asked(path):
    folder: Any = PureWindowsPath(r"C:\sent")
    assert not is_within(folder, folder / path)


@pytest.mark.parametrize("option", ["path", "documents"])
def test_a_path_that_the_system_refuses_is_an_error_of_ours(tmp_path, option):
    places = {"path": "data", "documents": None, option: "x" * 5_000}
    with pytest.raises(InputFileError, match=r"cannot read|no such file or folder"):
        Experiment.from_file(reading(tmp_path, **places))


def test_an_experiment_of_the_same_folder_may_be_read_from_anywhere(tmp_path, monkeypatch):
    file = reading(tmp_path, "data")
    link = tmp_path / "link"
    link.symlink_to(file.parent)
    monkeypatch.chdir(tmp_path)
    for path in (Path("sent/x.toml"), link / "x.toml", file):
        assert Experiment.from_file(path).data["d"].questions


# Keys and money


def test_a_server_of_this_machine_gets_no_key_of_the_provider(tmp_path, monkeypatch):
    pytest.importorskip("langchain_openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter22")
    with serve() as server:
        path = write_experiment(tmp_path, GRID, at(server.address))
        results = compare(path)
    assert results.run is not None
    assert results.run.complete
    assert {headers["authorization"] for headers in server.headers} == {"Bearer -"}
    assert "hunter22" not in str(server.headers)


def test_a_provider_is_asked_only_after_its_cost_was_confirmed(tmp_path, monkeypatch):
    groq = provider.install(monkeypatch)
    path = write_experiment(tmp_path, GRID, table("models", 'use = "groq:cranes"'))
    result = CliRunner().invoke(app, ["compare", str(path)])
    assert result.exit_code == 2
    assert "tokens may cost money" in result.stderr
    assert "pass --yes" in result.stderr
    assert CliRunner().invoke(app, ["compare", str(path), "--plan"]).exit_code == 0
    assert groq.prompts == []


# Python files


def compare_in_python(path, *options):
    return CliRunner().invoke(app, ["compare", path, *options])


def test_code_is_run_from_a_python_file_that_is_named(tmp_path):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, GRID, model(log=str(log)))
    assert compare_in_python(in_python(path), "--plan").exit_code == 0
    assert not log.exists()
    result = compare_in_python(in_python(path))
    assert result.exit_code == 0, result.output
    assert len(log.read_text().splitlines()) == 4
    assert path.with_suffix(".db").is_file()
    # As `import` does it, a file may use those beside it.
    (tmp_path / "beside_it.py").write_text("NAME = 'experiment'")
    other = tmp_path / "using_it.py"
    other.write_text("from beside_it import NAME\nfrom harbour import experiment as found\nglobals()[NAME] = found")
    assert compare_in_python(f"{other}:experiment", "--results", str(path.with_suffix(".db"))).exit_code == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("none.py:experiment", "file not found: none.py"),
        ("harbour.py:other", "harbour.py has no Experiment named 'other', got None"),
        ("harbour.py:Path", "harbour.py has no Experiment named 'Path'"),
        ("harbour.py:", "harbour.py has no Experiment named ''"),
        ("harbour.py", "name the variable with the experiment, such as harbour.py:experiment"),
        ("failing.py:experiment", "failing.py cannot be imported: no harbour here"),
        ("wrong.py:experiment", "wrong.py cannot be imported: invalid syntax"),
        ("refused.py:experiment", "name must not be empty"),
    ],
)
def test_a_python_file_without_an_experiment_is_one_line(tmp_path, monkeypatch, given, words):
    monkeypatch.chdir(tmp_path)
    write_experiment(tmp_path, GRID, model())
    (tmp_path / "failing.py").write_text("raise ValueError('no harbour here')")
    (tmp_path / "wrong.py").write_text("experiment = = 3")
    (tmp_path / "refused.py").write_text("from oprag.compare import Experiment\nExperiment(name='', data={}, grid={})")
    result = CliRunner().invoke(app, ["compare", given, "--plan"])
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.glob("*.db"))
