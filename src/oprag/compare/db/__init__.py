"""The results file: its tables, its checks, and all SQL."""

__all__: list[str] = []
