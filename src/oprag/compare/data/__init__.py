"""Question sets, in the formats in which they are published and in a plain one of our own."""

__all__: list[str] = []
