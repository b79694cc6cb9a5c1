"""Documents and their metadata choose no colour, line or direction on a terminal: escape sequences, bidi, line ends."""

import json
import os
import pty
import subprocess
import sys
import warnings

import pytest

from oprag import build_context
from oprag._internal.text_table import CONTROL_CHARACTERS
from oprag.chunk import Chunk
from oprag.errors import MissingPositionError

HOSTILE = "\x1b[2J\x9b31m\u202egnp\r\x07"
COMMAND = "from oprag.cli import main; main()"


def plain(message):
    return CONTROL_CHARACTERS.search(message) is None and "\n" not in message


def test_keys_of_metadata_are_shown_without_what_a_terminal_obeys():
    chunks = [Chunk("text", rank, metadata={f"{HOSTILE}\nError: forged": "a", "source": HOSTILE}) for rank in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        build_context(chunks, source_key="file", position_key=HOSTILE)
    assert len(caught) > 1
    assert all(plain(str(one.message)) for one in caught)
    with pytest.raises(MissingPositionError) as error:
        build_context(chunks, on_missing_position="error")
    assert plain(str(error.value))
    assert "forged" in str(error.value)


def shown_on_a_terminal(*arguments):
    """What a command prints where its standard output is a terminal."""
    reading, writing = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", COMMAND, *arguments], stdout=writing, stderr=writing) as process:
        os.close(writing)
        shown = b""
        try:
            while part := os.read(reading, 65_536):
                shown += part
        except OSError:  # how Linux says that nobody writes any more
            pass
        os.close(reading)
    assert process.returncode == 0, shown
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="terminals of Unix")
def test_passages_are_cleaned_on_a_terminal(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("The crane \x1b[2J lifts \x9b31m forty \u202e tons.", encoding="utf-8")
    shown = shown_on_a_terminal("ask", str(book), "crane")
    assert "The crane \ufffd[2J lifts \ufffd31m forty \ufffd tons." in shown


def test_json_escapes_what_a_terminal_obeys(tmp_path):
    from typer.testing import CliRunner

    from oprag.cli.app import app

    book = tmp_path / "book.txt"
    book.write_text("The crane \x1b[2J lifts \x9b31m forty \u202e tons.", encoding="utf-8")
    said = CliRunner().invoke(app, ["ask", str(book), "crane", "--json"]).stdout
    assert CONTROL_CHARACTERS.search(said) is None
    assert "\x9b31m forty \u202e tons." in json.loads(said)["text"]
