"""What is told from results: settings, comparisons, and all that tables and reports show, from one matrix."""

__all__: list[str] = []
