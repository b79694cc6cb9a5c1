"""What `oprag.compare` offers."""

import oprag.compare
import oprag.compare.running.run
from tests.helpers import run_python


def test_every_name_can_be_had_and_is_shown_where_it_is_offered():
    for name in oprag.compare.__all__:
        public = getattr(oprag.compare, name)
        assert public.__doc__
        assert public.__module__ == "oprag.compare"
    # A module that is imported does not stand in place of the function that it has.
    assert callable(oprag.compare.run)


def test_importing_it_loads_nothing_heavy():
    loaded = run_python("import sys, oprag.compare; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert not {"numpy", "pydantic", "langchain_core", "llama_index", "wordllama", "sqlite3", "typer"} & set(loaded)
