"""Options in the help and in the completion of shells."""

import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from oprag.cli.app import app


def parameters(command):
    commands: Any = get_command(app)
    return {parameter.name: parameter for parameter in commands.commands[command].params}


@pytest.mark.parametrize("command", ["ask", "check", "demo", "compare", "report", "sweep"])
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
    assert completed("oprag", "ask", "--source-r") == ["--source-ranking"]
    assert completed("oprag", "ask", "--order", "r") == ["rank", "reverse_rank", "random"]
    assert completed("oprag", "ask", "--method", "map") == ["map_reduce", "map_rerank"]
