"""SVG charts of a report: line charts with error bars, scatter plots with a Pareto front, and forest plots."""

__all__: list[str] = []
