"""The command line has every option of `Assembly`, with the same names and defaults."""

from dataclasses import fields
from typing import Any

from typer.main import get_command

from oprag import Assembly
from oprag.cli.app import app

OWN = {"files", "question", "chunk_size", "chunk_overlap", "as_json", "raw", "explain"}
# An index is searched, as a vector store is; without a limit the whole document would come back.
EXCEPTIONS = {"k": 128, "token_budget": 16_384}


def parameters():
    commands: Any = get_command(app)
    return {parameter.name: parameter for parameter in commands.commands["context"].params}


def test_every_option_is_there():
    assert set(parameters()) - OWN == {field.name for field in fields(Assembly)}


def test_defaults_are_those_of_the_assembly():
    expected = {field.name: field.default for field in fields(Assembly)} | EXCEPTIONS
    expected |= {"count_tokens": "approximate", "separator": r"\n\n"}
    assert {name: parameter.default for name, parameter in parameters().items() if name not in OWN} == expected


def test_descriptions_are_those_of_the_assembly():
    for field in fields(Assembly):
        assert parameters()[field.name].help.startswith(field.metadata["help"])
