"""Sweeps over token budgets and orders: the experiment, and the setting that is worth deploying."""

__all__: list[str] = []
