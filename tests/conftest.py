"""Hypothesis profiles (100 repeatable examples, or 10,000 fresh ones with HYPOTHESIS_PROFILE=nightly), and Ctrl-C."""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from oprag._internal.warn import forget

settings.register_profile("default", max_examples=100, deadline=None, derandomize=True)
settings.register_profile(
    "nightly", max_examples=10_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell starts what is in its background with Ctrl-C ignored, and so would everything that is started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """Nearly nothing of what is imported and collected is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector away from thousands of collected tests, which all stay to the end."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _nothing_was_told() -> None:
    """A process is told once; here each test is one."""
    forget()
