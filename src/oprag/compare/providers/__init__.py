"""Models and embedders by their names, for the command line and the comparison harness."""

from oprag.token_counters import LOCAL

__all__ = ["CHAT_PROVIDERS", "EMBEDDING_PROVIDERS", "LOCAL"]

EMBEDDING_PROVIDERS = frozenset(
    (
        *("azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "huggingface"),
        *("mistralai", "ollama", "openai"),
    )
)
"""The providers of LangChain's `init_embeddings`: PROVIDER:MODEL with one of these is never a function."""

CHAT_PROVIDERS = EMBEDDING_PROVIDERS | frozenset(
    (
        *("anthropic", "anthropic_bedrock", "baseten", "bedrock_converse", "bedrock_mantle_anthropic"),
        *("bedrock_mantle_openai", "deepseek", "fireworks", "google_anthropic_vertex", "groq", "ibm", "langsmith"),
        *("litellm", "meta", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"),
    )
)
"""The same for `init_chat_model`."""
