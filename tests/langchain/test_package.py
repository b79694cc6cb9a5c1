"""This folder has the name of the package that it is about, and must not hide it."""

from importlib import import_module
from importlib.metadata import version

import oprag.langchain


def test_langchain_is_the_real_one():
    assert import_module("langchain").__version__ == version("langchain")


def test_the_public_names_are_sorted_and_there():
    assert oprag.langchain.__all__ == sorted(oprag.langchain.__all__)
    assert all(hasattr(oprag.langchain, name) for name in oprag.langchain.__all__)
