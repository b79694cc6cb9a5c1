import importlib.metadata
import importlib.resources
import inspect
import pkgutil
import sys
import typing
from collections.abc import Iterable

import pytest

import oprag
from tests.helpers import run_python

FRAMEWORKS = ("langchain", "llama_index", "cli")


def as_sorted(names: Iterable[str]) -> list[str]:
    """Constants, classes, everything else, as ruff sorts them."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def test_all_is_sorted():
    assert oprag.__all__ == as_sorted(oprag.__all__)


@pytest.mark.parametrize("name", oprag.__all__)
def test_every_public_name_can_be_imported_and_is_shown_under_the_package(name):
    public = getattr(oprag, name)
    assert getattr(public, "__module__", "oprag") == "oprag"
    assert name == "__version__" or public.__doc__


def test_every_public_class_and_function_is_in_all():
    for name in oprag.__all__:
        getattr(oprag, name)
    shown = {
        name
        for name, value in vars(oprag).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == "oprag"
    }
    assert shown <= set(oprag.__all__)


def test_the_names_are_listed_for_completion_before_they_are_used():
    assert run_python("import oprag; print(set(oprag.__all__) <= set(dir(oprag)))") == "True\n"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = oprag.nothing


MODULES = [
    module.name.removeprefix("oprag.")
    for module in pkgutil.walk_packages(oprag.__path__, "oprag.")
    if module.name.split(".")[1] not in FRAMEWORKS
]


@pytest.mark.parametrize("name", MODULES)
def test_every_module_lists_what_it_offers_and_says_what_it_is_for(name):
    module = importlib.import_module(f"oprag.{name}")
    assert module.__doc__
    assert module.__doc__.splitlines()[0].endswith((".", ":"))
    if not name.startswith("_"):
        assert module.__all__ == as_sorted(module.__all__)
        assert all(hasattr(module, public) for public in module.__all__)


HEAVY = (
    "langchain_core",
    "llama_index",
    "wordllama",
    "tokenizers",
    "transformers",
    "tiktoken",
    "typer",
    "rich",
    "pydantic",
    "numpy",
)


def test_importing_the_package_loads_nothing_heavy():
    loaded = run_python("import sys, oprag; print(*sorted({name.partition('.')[0] for name in sys.modules}))").split()
    assert "oprag" in loaded
    assert not set(HEAVY) & set(loaded)


def test_an_adapter_loads_neither_numpy_nor_sqlite_before_it_needs_vectors():
    code = """
import sys
from oprag.langchain import OrderPreservingRetriever, as_embedder
from oprag import DualEncoder, VectorCache
print(len({"numpy", "sqlite3"} & set(sys.modules)))
"""
    assert run_python(code) == "0\n"


def test_a_retriever_loads_neither_methods_nor_readers_of_files():
    code = """
import sys
from oprag.langchain import OrderPreservingRetriever
print(*{"oprag.methods.run", "oprag.methods.replies", "oprag._internal.files.reading"} & set(sys.modules))
"""
    assert run_python(code) == "\n"


def test_assembling_a_context_loads_nothing_heavy():
    code = """
import sys
from oprag import Chunk, build_context
print(build_context([Chunk("text", 0, source="book", metadata={"chunk_index": 1})], token_budget=9).text)
print(*sorted({name.partition('.')[0] for name in sys.modules}))
"""
    text, loaded = run_python(code).splitlines()
    assert text == "text"
    assert not set(HEAVY) & set(loaded.split())


MISSING = """
import sys
sys.modules[{module!r}] = None
try:
    {statement}
except ImportError as error:
    import oprag
    print(isinstance(error, oprag.errors.MissingExtraError), error)
"""


@pytest.mark.parametrize(
    ("module", "statement", "feature", "extra"),
    [
        ("langchain_core", "import oprag.langchain", "oprag.langchain", "langchain"),
        ("llama_index", "import oprag.llama_index", "oprag.llama_index", "llama-index"),
        ("llama_index.core", "import oprag.llama_index", "oprag.llama_index", "llama-index"),
        ("mcp", "import oprag.mcp", "oprag.mcp", "mcp"),
        ("wordllama", "from oprag import LocalEmbedder; LocalEmbedder()", "The local embedder", "local"),
        ("tokenizers", "from oprag import LocalEmbedder; LocalEmbedder()", "The local embedder", "local"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command(module, statement, feature, extra):
    printed = run_python(MISSING.format(module=module, statement=statement))
    package = f"'oprag[{extra}]'"
    if extra == "local" and sys.version_info >= (3, 14):
        package = "wordllama, which needs a C++ compiler on Python 3.14"
    assert printed == f"True {feature} requires an optional dependency; install it with: pip install {package}\n"


def test_the_package_is_typed_and_has_a_version():
    files = importlib.resources.files("oprag")
    assert (files / "py.typed").is_file()
    assert importlib.metadata.version("oprag") == oprag.__version__


@pytest.mark.parametrize("name", oprag.__all__)
def test_annotations_can_be_resolved(name):
    # Documentation tools and validators resolve them in the module that a name says it is from.
    public = getattr(oprag, name)
    if isinstance(public, type) or inspect.isfunction(public):
        assert isinstance(typing.get_type_hints(public), dict)
