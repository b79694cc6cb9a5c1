import inspect
import typing

import pytest

from oprag.compare import metrics
from tests.helpers import run_python


def test_all_is_sorted():
    assert metrics.__all__ == sorted(metrics.__all__)
    assert set(metrics.__all__) <= set(dir(metrics))


@pytest.mark.parametrize("name", metrics.__all__)
def test_every_metric_is_documented(name):
    metric = getattr(metrics, name)
    assert inspect.isfunction(metric)
    assert all(part in (metric.__doc__ or "") for part in ("Args:", "Returns:", "Raises:", "Example:"))
    assert typing.get_type_hints(metric)["return"] in (float, float | None)


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, oprag.compare.metrics; print(*{name.partition('.')[0] for name in sys.modules})"
    assert not {"rouge_score", "nltk", "pydantic"} & set(run_python(code).split())


def test_a_file_that_was_imported_before_does_not_hide_the_function():
    code = """
import importlib, pkgutil
import oprag.compare.metrics as metrics
for module in pkgutil.iter_modules(metrics.__path__, "oprag.compare.metrics."):
    importlib.import_module(module.name)
print(all(callable(getattr(metrics, name)) for name in metrics.__all__))
"""
    assert run_python(code) == "True\n"
