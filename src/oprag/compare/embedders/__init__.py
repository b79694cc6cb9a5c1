"""Embedders of an experiment, from names and from both frameworks."""

from oprag.compare.embedders.spec import EmbedderSpec, ExperimentEmbedder, as_compare_embedder

__all__ = ["EmbedderSpec", "ExperimentEmbedder", "as_compare_embedder"]
