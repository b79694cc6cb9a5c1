"""What docs/sweeping.md shows is run as it stands."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.profile import read_profile

PAGE = (Path(__file__).parent.parent / "docs" / "sweeping.md").read_text(encoding="utf-8")
(SCRIPT,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(COMMAND,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
(SHOWN,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


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
    # The figures are those of one version of Python's documentation.
    printed, _ = swept
    figures = re.compile(r"[+-]?\d[\d,.]*")
    ours = [figures.sub("0", line) for line in printed.splitlines()[-3:]]
    assert ours == [figures.sub("0", line) for line in SHOWN.splitlines()]


def test_the_profile_is_the_chosen_setting(swept):
    _, folder = swept
    profile = read_profile(folder / "oprag.toml")
    assert profile.assembly["token_budget"] == 16_384
    assert profile.assembly["order"] == "source"
