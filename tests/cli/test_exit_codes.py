"""The same cause ends every command with the same code: the table of docs/reference/command_line.md, and no other."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from oprag import errors
from oprag.cli.console import exit_code
from tests.cli import provider
from tests.cli.commands import run
from tests.compare.folders import model, write_experiment
from tests.compare.spending import write_ledgers

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "reference" / "command_line.md"
DONE, INCOMPLETE, INVALID_INPUT, PROBLEMS_FOUND, INTERRUPTED = 0, 1, 2, 3, 130

GRID = 'method = "stuff"\nk = 2'
COMMANDS = ("ask", "demo", "check", "compare", "report", "sweep")

NO_OPTION = dict.fromkeys(COMMANDS, ("book.txt", "--colour", "red"))
EMPTY = {"ask": ("book.txt", ""), "demo": ("--question", "")}
NO_FILE = {
    "ask": ("none.txt", "What?"),
    "compare": ("none.toml",),
    "sweep": ("none.txt", "--questions", "asked.jsonl"),
    "check": ("none.jsonl",),
}
NO_NUMBER = {
    "ask": ("book.txt", "What?", "--k", "0"),
    "compare": ("wrong.toml",),
    "sweep": ("book.txt", "--questions", "asked.jsonl", "--budgets", "0"),
    "check": ("chunks.jsonl", "--max-chunks", "0"),
}
NO_ORDER = {"check": ("chunks.jsonl",)}
NO_CHUNK_FITS = {"ask": ("book.txt", "What?", "--token-budget", "1")}
NO_DATA = {"compare": ("code.toml",)}
NO_RESULTS = {
    "compare": ("harbour.py:experiment", "--results", "damaged.db"),
    "report": ("damaged.db",),
    "sweep": ("book.txt", "--questions", "asked.jsonl", "--budgets", "60", "--results", "damaged.db"),
}
MODEL_FAILS = {
    "ask": ("book.txt", "What?", "--model", "groq:down"),
    "compare": ("failing.py:experiment",),
    "sweep": (*("book.txt", "--questions", "asked.jsonl", "--budgets", "60", "--yes"), *("--model", "groq:down")),
}
# Where each command reads, so that Ctrl-C may come there.
READS = {
    "ask": "oprag.cli.ask.read_sources",
    "demo": "oprag.cli.demo.index_sources",
    "check": "oprag.compare.data.files.json_records",
    "compare": "oprag.compare.experiment.Experiment.from_file",
    "report": "oprag.compare.report.write.write_report",
    "sweep": "oprag.compare.data.read.read_data",
}
ASKS = {
    "ask": ("book.txt", "What?"),
    "demo": ("--question", "What?"),
    "check": ("chunks.jsonl",),
    "compare": ("harbour.toml",),
    "report": ("harbour.db",),
    "sweep": ("book.txt",),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_ledgers(tmp_path)
    experiments = {
        "failing": (GRID, '[models.m]\nuse = "tests.compare.answering:leaking"'),
        "code": (GRID, '[models.m]\nuse = "os:system"'),
        "wrong": (GRID.replace("2", "0"), model()),
    }
    for name, (grid, table) in experiments.items():
        path = write_experiment(tmp_path, grid, table)
        path.rename(tmp_path / f"{name}.toml")
        path.with_suffix(".py").rename(tmp_path / f"{name}.py")
    write_experiment(tmp_path, GRID, model())
    (tmp_path / "harbour.db").touch()
    (tmp_path / "chunks.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n', encoding="utf-8")
    (tmp_path / "damaged.db").write_text("no database at all, but long enough to look like one" * 40, encoding="utf-8")
    return tmp_path


def code_of(command, *arguments):
    result = run(command, *arguments)
    assert "Traceback" not in result.stderr
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code


CASES: dict[str, tuple[Mapping[str, tuple[str, ...]], int]] = {
    "no such option": (NO_OPTION, INVALID_INPUT),
    "an empty question": (EMPTY, INVALID_INPUT),
    "a missing file": (NO_FILE, INVALID_INPUT),
    "a number that it cannot be": (NO_NUMBER, INVALID_INPUT),
    "no chunk fits": (NO_CHUNK_FITS, INVALID_INPUT),
    "code in an experiment file": (NO_DATA, INVALID_INPUT),
    "a damaged results file": (NO_RESULTS, INCOMPLETE),
    "a model that fails": (MODEL_FAILS, INCOMPLETE),
    "an order that cannot be known": (NO_ORDER, PROBLEMS_FOUND),
}


@pytest.mark.parametrize(
    ("case", "command"), [(case, command) for case, (given, _) in CASES.items() for command in given]
)
def test_a_cause_has_one_code_in_every_command(folder, monkeypatch, case, command):
    provider.install(monkeypatch)
    given, code = CASES[case]
    assert code_of(command, *given[command]) == code


@pytest.mark.parametrize("command", COMMANDS)
def test_control_c_is_130_in_every_command(folder, monkeypatch, command):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(READS[command], interrupted)
    assert code_of(command, *ASKS[command]) == INTERRUPTED


def test_every_error_has_a_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.OpragError)]
    unfinished = {kind.__name__ for kind in kinds if exit_code(kind.__new__(kind)) == INCOMPLETE}
    assert unfinished == {
        *("OpragError", "ChunkError", "TokenizerError", "EmbeddingError", "CacheError"),
        *("ResultsFileError", "ModelError", "SourceReadError"),
    }


def test_the_table_of_the_documents_has_these_codes():
    rows = re.findall(r"^\| (\d+) \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code in rows] == [DONE, INCOMPLETE, INVALID_INPUT, PROBLEMS_FOUND, INTERRUPTED]
