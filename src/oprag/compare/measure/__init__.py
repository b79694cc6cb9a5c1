"""Time, processor and memory of answers: one cell after the other, each in a fresh process."""

__all__: list[str] = []
