"""Reading and writing files safely."""

__all__: list[str] = []
