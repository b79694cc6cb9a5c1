"""Mutation testing: make small changes to the code, one at a time, and check whether the tests fail.

    pytest -m "not integration" -n auto --cov --cov-context=test
    python -m benchmarks.mutants --number 150 --seed 0 --write mutants.jsonl

Each mutant is tested with the tests that ran its line, in a copy of the sources. Surviving mutants are listed: either a
test is missing, or the mutant is equivalent to the code. An interrupted run can be resumed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "oprag"
OUTSIDE = ("compare", "cli")
"""Subpackages that are not mutated by default."""
TESTS = 300
"""Maximum number of tests per mutant, sampled from those that ran its line."""
SECONDS = 300.0

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}


class Mutant(NamedTuple):
    """A change of the code.

    Attributes:
        path: The file, relative to the package.
        line: The line.
        before: The original code.
        after: The code that replaces it.
        source: The whole file with the change.
    """

    path: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  →  {self.after}"


def places_in(path: Path) -> Iterator[tuple[int, int]]:
    """Yield the possible changes: the number of the node in the tree, and that of the change."""
    for number, node in enumerate(ast.walk(ast.parse(path.read_text(encoding="utf-8")))):
        for change in range(len(_changes(node))):
            yield number, change


def mutant_at(path: Path, number: int, change: int) -> Mutant | None:
    """Return the mutant of a place; None if the change cannot be written or has no effect."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node: Any = list(ast.walk(tree))[number]
    before = copy.deepcopy(node)
    _changes(node)[change]()
    try:
        was, now = ast.unparse(before), ast.unparse(node)
        source = ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, AttributeError):
        return None
    if was == now:
        return None
    return Mutant(str(path.relative_to(PACKAGE)), node.lineno, was.splitlines()[0], now.splitlines()[0], source)


def _changes(node: Any) -> list[Callable[[], None]]:
    """Return the possible changes of a node in place."""
    changes: list[Callable[[], None]] = []
    value: Any = getattr(node, "value", None)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        changes.append(lambda: node.ops.__setitem__(0, _COMPARISONS[type(node.ops[0])]()))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS and not isinstance(node.left, ast.Constant):
        changes.append(lambda: setattr(node, "op", _OPERATIONS[type(node.op)]()))
    if isinstance(node, ast.BoolOp):
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        changes.append(lambda: setattr(node, "op", other()))
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        changes.append(lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
    if isinstance(node, ast.Constant) and type(value) is int:
        changes.append(lambda: setattr(node, "value", value + 1))
    if isinstance(node, ast.Constant) and type(value) is bool:
        changes.append(lambda: setattr(node, "value", not value))
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        changes.append(lambda: setattr(node, "value", ast.Constant(None)))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        changes.append(lambda: setattr(node, "value", ast.Constant(None)))
    return changes


class Covering:
    """The tests that ran each line.

    Args:
        data: The coverage data file with a context for each test.
    """

    def __init__(self, data: Path) -> None:
        self._data = CoverageData(basename=str(data))
        self._data.read()

    def tests(self, path: str, line: int) -> list[str]:
        """Return the tests in a fixed order; none for a line that only runs at import."""
        contexts = self._data.contexts_by_lineno(str(PACKAGE / path)).get(line, [])
        # Not the doctests: they run in the sources, not in the copy.
        return sorted({context.rpartition("|")[0] for context in contexts if context.startswith("tests/")})


def killed(mutant: Mutant, tests: list[str]) -> bool:
    """Return whether a test fails on the mutant, or times out."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "oprag"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        (copied / mutant.path).write_text(mutant.source, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--no-header", "--no-cov"]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        try:
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return True
    # 2: a test module cannot even be imported; a test that does not exist is 4.
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"the tests of {mutant.name} could not be run: {done.stderr.decode()[:500]}")
    return done.returncode != 0


def drawn(seed: int, covering: Covering) -> Iterator[tuple[Mutant, list[str]]]:
    """Yield mutants of lines that a test ran, each with its tests, in random order."""
    chance = random.Random(seed)
    files = sorted(path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in OUTSIDE)
    places = [(path, *place) for path in files for place in places_in(path)]
    chance.shuffle(places)
    for path, number, change in places:
        mutant = mutant_at(path, number, change)
        if mutant is not None and (tests := covering.tests(mutant.path, mutant.line)):
            yield mutant, chance.sample(tests, min(TESTS, len(tests)))


def main() -> None:
    """Test mutants and print those that survive."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--number", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coverage", type=Path, default=ROOT / ".coverage")
    parser.add_argument("--write", type=Path, required=True)
    given = parser.parse_args()
    known = {}
    if given.write.exists():
        known = {row["name"]: row for row in map(json.loads, given.write.read_text(encoding="utf-8").splitlines())}
    survivors = 0
    with given.write.open("a", encoding="utf-8") as file:
        for count, (mutant, tests) in enumerate(drawn(given.seed, Covering(given.coverage)), 1):
            if (row := known.get(mutant.name)) is None:
                row = {"name": mutant.name, "killed": killed(mutant, tests), "tests": len(tests)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                file.flush()
            if not row["killed"]:
                survivors += 1
                print(f"survived {row['tests']} tests: {mutant.name}", flush=True)
            if count == given.number:
                break
    print(f"{count - survivors} of {count} mutants were killed")


if __name__ == "__main__":
    main()
