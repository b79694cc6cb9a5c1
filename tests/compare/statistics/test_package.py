import inspect

import pytest

from oprag.compare import statistics
from tests.helpers import run_python


def test_all_is_sorted():
    assert sorted(statistics.__all__, key=lambda name: (not name[0].isupper(), name)) == statistics.__all__
    assert set(statistics.__all__) <= set(dir(statistics))


@pytest.mark.parametrize("name", statistics.__all__)
def test_every_name_is_shown_under_the_package_and_documented(name):
    public = getattr(statistics, name)
    assert public.__module__ == "oprag.compare.statistics"
    assert public.__doc__
    if inspect.isfunction(public):
        assert all(part in public.__doc__ for part in ("Args:", "Raises:", "Example:"))


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, oprag.compare.statistics; print(*{name.partition('.')[0] for name in sys.modules})"
    assert not {"numpy", "scipy", "pydantic"} & set(run_python(code).split())


def test_nothing_but_numpy_is_needed():
    code = """
import sys
sys.modules["scipy"] = None
from oprag.compare.statistics import holm, mean_over, paired_difference, summarise
first, second = {"a": 1.0, "b": 0.5}, mean_over([{"a": 0.5, "b": 0.5}])
print(summarise(first.values()).n, holm({"x": paired_difference(first, second).p_value}))
"""
    assert run_python(code) == "2 {'x': 1.0}\n"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 't_test'"):
        _ = statistics.t_test
