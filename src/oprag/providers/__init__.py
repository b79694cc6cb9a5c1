"""Models and embedders by their names, for the command line and the comparison harness."""

__all__ = ["LOCAL"]

LOCAL = "local"
"""The name of what comes in packages: the embedder, and the small model."""
