import builtins
import pickle
import re

import pytest

from oprag import errors
from oprag.errors import MissingExtraError, OpragError, OpragWarning

CLASSES = {name: getattr(errors, name) for name in errors.__all__}


def drawn() -> dict[str, tuple[str, str | None]]:
    """Each class in the tree of the docstring, with the builtin in brackets or the class at the root of its tree."""
    tree: dict[str, tuple[str, str | None]] = {}
    root = child = ""
    for line in (errors.__doc__ or "").splitlines():
        if match := re.fullmatch(r"    (\w+) \((\w+)\)", line):
            root = match[1]
            tree[root] = (match[2], None)
        elif match := re.fullmatch(r"    (\w+)", line):
            root = match[1]
            tree[root] = ("Exception", None)
        elif match := re.fullmatch(r"    [├└]── (\w+)(?: \((\w+)\))? +\S.*", line):
            tree[match[1]] = (match[2] or "", root)
            child = match[1]
        elif match := re.fullmatch(r"    │   [├└]── (\w+) +\S.*", line):
            tree[match[1]] = ("", child)
    return tree


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    tree = drawn()
    assert set(tree) == set(CLASSES)
    for name, (builtin, parent) in tree.items():
        bases = [CLASSES[parent]] if parent else []
        bases += [getattr(builtins, builtin)] if builtin else []
        assert CLASSES[name].__bases__ == tuple(bases), name


def test_every_class_is_listed():
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert defined == set(errors.__all__)
    assert errors.__all__ == sorted(errors.__all__)


@pytest.mark.parametrize("name", sorted(set(CLASSES) - {"OpragError", "MissingExtraError"}))
def test_every_error_is_a_builtin_too_and_carries_its_value(name):
    kind = CLASSES[name]
    if issubclass(kind, OpragWarning):
        assert issubclass(kind, UserWarning)
        return
    assert issubclass(kind, OpragError)
    assert any(base.__module__ == "builtins" for base in {*kind.__mro__} - {*Exception.__mro__})
    value = object()
    error = kind("what happened", value)
    assert error.value is value
    assert str(error) == "what happened"
    assert kind("what happened").value is None


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_says_when_it_happens(name):
    assert CLASSES[name].__doc__


def test_a_missing_extra_is_one_sentence_with_the_command():
    error = MissingExtraError("The local embedder", "local")
    assert (
        str(error) == "The local embedder requires an optional dependency; install it with: pip install 'oprag[local]'"
    )
    assert error.value == "local"
    assert isinstance(error, ImportError)


def test_a_package_that_no_extra_brings_has_a_command_of_its_own():
    error = MissingExtraError("the store 'faiss'", "faiss", "pip install faiss-cpu")
    assert str(error) == "the store 'faiss' requires an optional dependency; install it with: pip install faiss-cpu"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_error_survives_the_way_to_another_process():
    for name in errors.__all__:
        kind = CLASSES[name]
        made = kind("Measuring", "measure") if name == "MissingExtraError" else kind("what happened")
        copy = pickle.loads(pickle.dumps(made))
        assert type(copy) is kind
        assert str(copy) == str(made)
        assert getattr(copy, "value", None) == getattr(made, "value", None)
