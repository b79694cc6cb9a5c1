"""What an experiment says, checked."""

__all__: list[str] = []
