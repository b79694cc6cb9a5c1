"""Reads and writes files safely."""

__all__: list[str] = []
