"""Models and embedders by name, from both frameworks, and from functions."""

__all__: list[str] = []
