"""oprag's postprocessor under the name of LlamaIndex's integrations."""

from oprag.llama_index import OrderPreservingPostprocessor

__all__ = ["OrderPreservingPostprocessor"]
