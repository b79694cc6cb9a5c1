"""One HTML file that shows what an experiment found, and opens offline."""

__all__: list[str] = []
