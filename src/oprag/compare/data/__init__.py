"""Question sets, in published formats and in oprag's own plain format."""

__all__: list[str] = []
