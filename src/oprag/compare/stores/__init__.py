"""Vector stores of an experiment: by their names, and of a user's own."""

__all__: list[str] = []
