"""The comparison harness: every method, order and threshold over the same questions, once each."""

__all__: list[str] = []
