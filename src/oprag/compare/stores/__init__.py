"""Vector stores of an experiment: built-in stores by name, and custom stores."""

__all__: list[str] = []
