"""Sweeps: budgets and orders over one ranking, what can be said of them, and what is worth deploying."""

from oprag.compare.sweep.choice import Sweep, read_sweep
from oprag.compare.sweep.experiment import sweep_experiment

__all__ = ["Sweep", "read_sweep", "sweep_experiment"]
