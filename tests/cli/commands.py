"""Commands run as a user runs them, and a book to ask about."""

import json
import re
from typing import Any

from typer.testing import CliRunner

from oprag.cli.app import app

QUESTION = "How much does a crane lift?"


def run(*arguments: Any, **kwargs: Any) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)], **kwargs)


def done(*arguments: Any, **kwargs: Any) -> Any:
    result = run(*arguments, **kwargs)
    assert result.exit_code == 0, result.output
    return result


def json_of(*arguments: Any, **kwargs: Any) -> Any:
    return json.loads(done(*arguments, "--json", **kwargs).stdout)


def check_refusal(result: Any, *words: str, code: int = 2) -> None:
    """One sentence on standard error that names what is wrong, and nothing else."""
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert re.fullmatch(r"Error: [^\n]+\n", result.stderr)
    for word in words:
        assert word in result.stderr
