"""What several tests of the methods use."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from oprag.methods import register_method, registry


@pytest.fixture
def registered() -> Iterator[Callable[..., Any]]:
    """Registers methods that are gone behind the test."""
    before = dict(registry._methods)
    yield register_method
    registry._methods.clear()
    registry._methods.update(before)
