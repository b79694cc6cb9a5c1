"""Each package imports only from itself and from the layers below it."""

import ast
from pathlib import Path

import oprag

PACKAGE = Path(oprag.__file__).parent

LAYERS = [
    "cli",
    "mcp",
    "compare",
    "langchain llama_index",
    "adapters",
    "agents",
    "methods",
    "index stores",
    "context",
    "pipeline",
    "embedding",
    "positions",
    "options",
    "chunk",
    "_internal errors _version",
]
"""The packages and modules of oprag, from top to bottom; only those in the last line import each other."""

DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names.split()}


def imported(tree: ast.AST) -> set[str]:
    """The packages and modules of oprag that a file imports, also inside functions and for annotations."""
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("oprag.")}


def test_every_package_has_a_layer():
    found = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert found - {"__init__", "__pycache__", "py"} == set(DEPTH)


def test_no_import_points_up():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        if own == "__init__":
            continue
        others = imported(ast.parse(path.read_text(encoding="utf-8"))) - {own}
        below = min(DEPTH[own] + 1, len(LAYERS) - 1)
        wrong += [f"{path.relative_to(PACKAGE)} imports {name}" for name in others if DEPTH[name] < below]
    assert sorted(wrong) == []
