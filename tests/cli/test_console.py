"""What every command prints in the same way."""

import pytest
import typer

from oprag.cli.console import EXIT_INTERRUPTED, errors_on_one_line


def read_line(error):
    raise error


def prompt(error):
    """What a prompt of Typer does."""
    try:
        read_line(error)
    except (KeyboardInterrupt, EOFError):
        raise typer.Abort from None


def test_control_c_at_a_prompt_is_no_answer():
    with pytest.raises(typer.Exit) as ended, errors_on_one_line():
        prompt(KeyboardInterrupt())
    assert ended.value.exit_code == EXIT_INTERRUPTED


def test_the_end_of_the_input_at_a_prompt_is_a_no():
    with pytest.raises(typer.Abort), errors_on_one_line():
        prompt(EOFError())
