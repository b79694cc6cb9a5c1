"""What docs/how_to/sweep.md shows is run as it stands."""

import hashlib
import re
import shlex
from pydoc_data.topics import topics

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.methods.profile import read_profile
from tests.reader import ROOT, text_blocks

PAGE = (ROOT / "docs" / "how_to" / "sweep.md").read_text(encoding="utf-8")
SCRIPT, PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(COMMAND,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(SHOWN,) = text_blocks(ROOT / "docs" / "how_to" / "sweep.md")
SHOWN_OF = "71f2ff5d99bdc1f9c48c5c2353ad138201c5ca1c377e0226857ef8fa89b8bcee"
"""The digest of the language reference of the version of Python that the page names."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(SCRIPT, "sweeping.md", "exec"), {})
        program, *arguments = shlex.split(COMMAND)
        result = CliRunner().invoke(app, arguments)
    assert program == "oprag"
    assert result.exit_code == 0, result.output
    return result.stdout, folder


def test_the_conclusion_is_the_one_that_is_shown(swept):
    printed, _ = swept
    ours, shown = printed.splitlines()[-3:], SHOWN.splitlines()
    if hashlib.sha256("\n\n".join(topics.values()).encode()).hexdigest() != SHOWN_OF:
        # Another version of Python has another text, and other figures.
        ours, shown = ([re.sub(r"[+-]?\d[\d,.]*", "0", line) for line in lines] for lines in (ours, shown))
    assert ours == shown


def test_the_profile_is_the_chosen_setting(swept):
    _, folder = swept
    profile = read_profile(folder / "oprag.toml")
    assert profile.context["token_budget"] == 16_384
    assert profile.context["order"] == "source"


def test_the_sweep_in_python_runs(swept, monkeypatch, capsys):
    _, folder = swept
    monkeypatch.chdir(folder)
    exec(compile(PYTHON, "sweeping.md", "exec"), {})
    budget, curves = capsys.readouterr().out.split()
    assert int(budget) == 16_384
    assert curves == "4"
