"""What the adapters of both frameworks share."""

__all__: list[str] = []
