"""Analysis of results: settings, comparisons and verdicts, all computed from one matrix of scores and costs."""

__all__: list[str] = []
