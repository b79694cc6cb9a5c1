"""The vectors of chunks and questions: where they come from, and that none is made twice."""

__all__: list[str] = []
