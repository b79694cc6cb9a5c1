"""The command line has every option of `ContextOptions`, with the same names and defaults."""

import re
from dataclasses import fields
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from oprag import ContextOptions
from oprag.cli.app import app
from oprag.cli.options import Indexing

INDEXING = {field.name: field for field in fields(Indexing)}
OWN = {"files", "question", "profile", "as_json", "raw", "explain", *INDEXING}
# An index is searched, as a vector store is; without a limit the whole document would come back.
EXCEPTIONS = {"k": 128, "token_budget": 16_384}


def parameters(command="context"):
    commands: Any = get_command(app)
    return {parameter.name: parameter for parameter in commands.commands[command].params}


def test_every_option_is_there():
    assert set(parameters()) - OWN == {field.name for field in fields(ContextOptions)}


def test_defaults_are_those_of_the_assembly():
    expected = {field.name: field.default for field in fields(ContextOptions)} | EXCEPTIONS
    expected |= {"count_tokens": "approximate", "separator": r"\n\n"}
    assert {name: parameter.default for name, parameter in parameters().items() if name not in OWN} == expected


def test_descriptions_are_those_of_the_assembly():
    for field in fields(ContextOptions):
        assert parameters()[field.name].help.startswith(field.metadata["help"])


@pytest.mark.parametrize("command", ["context", "ask", "map"])
def test_files_are_split_and_searched_alike_in_every_command(command):
    for name, field in INDEXING.items():
        assert parameters(command)[name].default == field.default
        assert parameters(command)[name].help == field.metadata["help"]


@pytest.mark.parametrize("command", ["context", "map", "ask", "demo", "compare", "report", "sweep"])
def test_no_name_is_cut_in_80_columns(command, monkeypatch):
    # Typer reads the width from the environment when it is imported.
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    told = CliRunner().invoke(app, [command, "--help"]).stdout
    shown = set(re.findall(r"(?<![\w-])--[\w-]+(?![\w…-])", told))
    names = {name for one in parameters(command).values() for name in (*one.opts, *one.secondary_opts)}
    assert {name for name in names if name.startswith("--")} <= shown
    assert not any(len(line) > 80 for line in told.splitlines())


def completed(*words):
    """What the shell is told for the last word."""
    environment = {"_OPRAG_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], env=environment, prog_name="oprag").stdout.split()


def test_the_shell_completes_commands_options_and_values():
    assert completed("oprag", "com") == ["compare"]
    assert completed("oprag", "context", "--source-r") == ["--source-ranking"]
    assert completed("oprag", "context", "--order", "r") == ["rank", "reverse_rank", "random"]
    assert completed("oprag", "ask", "--method", "map") == ["map_reduce", "map_rerank"]
    assert completed("oprag", "compare", "--compare-axis", "sp") == ["splitter"]
    assert completed("oprag", "report", "--metric", "evi") == ["evidence_coverage"]
    assert completed("oprag", "sweep", "--format", "narr") == ["narrativeqa"]


@pytest.mark.parametrize(
    ("command", "option"),
    [("context", "--order"), ("ask", "--overflow"), ("ask", "--rank-by"), ("ask", "--on-error"), ("sweep", "--search")],
)
def test_a_value_that_is_none_of_the_choices_is_refused(command, option):
    result = CliRunner().invoke(app, [command, "book.txt", "What?", option, "sideways"])
    assert result.exit_code == 2
    assert "'sideways' is not one of" in " ".join(result.stderr.replace("│", "").split())
