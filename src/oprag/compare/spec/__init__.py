"""The specification of an experiment, checked."""

__all__: list[str] = []
