"""The LlamaIndex adapter."""
