"""The sections of a report, one a file: each gives itself, or None where there is nothing to show."""

__all__: list[str] = []
