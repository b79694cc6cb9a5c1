"""Sweeps over token budgets and orders: the experiment, its result, and the recommended setting."""

__all__: list[str] = []
