"""Metrics of answers and contexts, and judges."""

__all__: list[str] = []
