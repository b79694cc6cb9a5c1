"""The charts of a report as SVG: lines with whiskers, dots with a Pareto front, and forest plots."""

__all__: list[str] = []
