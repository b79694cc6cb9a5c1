"""Hypothesis profiles: 500 repeatable examples by default, 10,000 fresh ones with HYPOTHESIS_PROFILE=nightly."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", max_examples=500, deadline=None, derandomize=True)
settings.register_profile(
    "nightly", max_examples=10_000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
