"""Report of an experiment: one self-contained HTML file."""

__all__: list[str] = []
