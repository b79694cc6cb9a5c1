"""Metrics, one a file: functions of plain values, checked against reference implementations."""

__all__: list[str] = []
