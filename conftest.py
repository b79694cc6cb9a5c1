"""Examples in docstrings, and what is tested on Python 3.14 without a compiler: WordLlama has no wheel there."""

import sys
from collections.abc import Generator
from importlib.util import find_spec

import pytest

from oprag.errors import MissingExtraError
from oprag.methods import registry


@pytest.fixture(autouse=True)
def _forget_methods_of_examples(request: pytest.FixtureRequest) -> Generator[None]:
    """Forget a method that an example registers; other tests list all methods."""
    before = dict(registry._methods)
    yield
    if isinstance(request.node, pytest.DoctestItem):
        registry._methods.clear()
        registry._methods.update(before)


if sys.version_info >= (3, 14) and find_spec("wordllama") is None:
    # The core and the two frameworks are tested, except for examples with the local embedder.
    collect_ignore = [f"tests/{folder}" for folder in ("cli", "compare", "docs", "mcp", "security")]
    collect_ignore += ["tests/core/embedding/test_static.py", "tests/adapters/contract/test_local_embeddings.py"]
    collect_ignore += [f"src/oprag/{folder}" for folder in ("cli", "compare", "mcp")]
    collect_ignore += ["src/oprag/__init__.py"]
    collect_ignore += ["src/oprag/langchain/embeddings.py", "src/oprag/llama_index/embeddings.py"]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call() -> Generator[None]:
        """Skip a test that needs the local embedder."""
        try:
            yield
        except MissingExtraError as error:
            pytest.skip(str(error))
