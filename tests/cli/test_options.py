"""The command line has every option of `ContextOptions`, with the same names and defaults."""

from dataclasses import fields
from typing import Any

import pytest
from typer.main import get_command

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
