"""The validated specification of an experiment."""

__all__: list[str] = []
