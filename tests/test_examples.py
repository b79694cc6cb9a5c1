"""The examples run and show the two orders."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    # Deprecations are the frameworks' own, inside their packages.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    orders = {
        name.strip(): [int(number) for number in numbers.split(", ")]
        for name, numbers in re.findall(r"^ *(\w+ order): chunks (.*)$", result.stdout, re.MULTILINE)
    }
    assert orders["source order"] == sorted(orders["rank order"])
    assert orders["source order"] != orders["rank order"]
