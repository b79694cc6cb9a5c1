"""What can be said about scores of a sample of questions: summaries, intervals, differences."""

__all__: list[str] = []
