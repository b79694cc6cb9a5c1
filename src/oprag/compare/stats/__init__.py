"""Statistics of score arrays: intervals, paired differences and p-values. NaN means that a question has no score."""

__all__: list[str] = []
