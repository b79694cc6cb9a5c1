"""Time, CPU and memory of answers: one cell at a time, each in a fresh process."""

__all__: list[str] = []
