"""What is wrong with a provider's model, in one line."""

from oprag.masking import error_text

__all__ = ["reason"]


def reason(error: Exception) -> str:
    """What is wrong with a provider's model, in one line."""
    if callable(details := getattr(error, "errors", None)):
        # Some clients check themselves with pydantic, whose first line says nothing but the name of a class.
        return "; ".join(detail["msg"] for detail in details())
    # Some of LangChain's messages go on with pages of links.
    first = error_text(error).strip().partition("\n")[0]
    return first or type(error).__name__
