"""The results file: its tables and keys, and all SQL of the harness; messages are masked when written and when read."""

__all__: list[str] = []
