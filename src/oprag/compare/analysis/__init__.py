"""Analysis of results: settings, comparisons and verdicts, from one matrix of scores and costs."""

__all__: list[str] = []
