"""The entry point: without the extra, and with outputs that cannot hold everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oprag import __version__
from tests.cli.commands import done


def test_without_the_extra_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from oprag.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert (
        result.stderr == "The command line requires an optional dependency; install it with: pip install 'oprag[cli]'\n"
    )


def test_version():
    assert done("--version").stdout == f"oprag {__version__}\n"


def test_help_waits_for_nothing_that_only_some_commands_need():
    slow = {"pydantic", "langchain_core", "matplotlib", "oprag.compare.experiment", "pandas"}
    code = f"import sys, oprag.cli.app; print(*({slow!r} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


BOOK = "Das Maß aller Dinge — 中 — ist der Mensch. 😀"


def run_main(folder, *arguments, stdout=subprocess.PIPE, **environment):
    code = f"import sys; sys.argv = ['oprag', *{list(map(str, arguments))!r}]; from oprag.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.process
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_what_an_output_cannot_hold_is_escaped(tmp_path, encoding):
    (tmp_path / "book.txt").write_text(BOOK, encoding="utf-8")
    for options in ((), ("--explain",), ("--json",)):
        result = run_main(tmp_path, "ask", "book.txt", "Maß?", "--k", 1, *options, PYTHONIOENCODING=encoding)
        assert (result.returncode, result.stderr) == (0, b"")
        assert rb"\u4e2d" in result.stdout


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk_is_one_line(tmp_path):
    (tmp_path / "book.txt").write_text("The harbour has nine cranes.", encoding="utf-8")
    with Path("/dev/full").open("wb") as full:
        result = run_main(tmp_path, "ask", "book.txt", "cranes?", "--k", 1, stdout=full)
    assert result.returncode != 0
    assert b"Traceback" not in result.stderr
    assert b"Error: No space left on device" in result.stderr
