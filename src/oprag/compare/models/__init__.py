"""Models of an experiment, from names, from both frameworks, and from functions."""

from oprag.compare.models.spec import Model, ModelSpec, as_model

__all__ = ["Model", "ModelSpec", "as_model"]
