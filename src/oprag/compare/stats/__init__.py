"""Statistics of scores: intervals, paired differences, p-values. Arrays in, NaN where a question has no score."""

__all__: list[str] = []
