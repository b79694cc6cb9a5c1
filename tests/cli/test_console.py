"""What every command prints in the same way."""

import pytest
import typer

from oprag.cli.console import INTERRUPTED, plain_errors


def read_line(error):
    raise error


def prompt(error):
    """What a prompt of Typer does."""
    try:
        read_line(error)
    except (KeyboardInterrupt, EOFError):
        raise typer.Abort from None


def test_control_c_at_a_prompt_is_no_answer():
    with pytest.raises(typer.Exit) as ended, plain_errors():
        prompt(KeyboardInterrupt())
    assert ended.value.exit_code == INTERRUPTED


def test_the_end_of_the_input_at_a_prompt_is_a_no():
    with pytest.raises(typer.Abort), plain_errors():
        prompt(EOFError())
