"""What a method needs of LlamaIndex: prompts, messages and replies of its models, and its search and embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW, DEFAULT_NUM_OUTPUTS
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, PromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.rich import RichPromptTemplate
from llama_index.core.schema import QueryBundle

from oprag._internal.sync_async import Step, Steps, run_sync
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import PromptError, QueryError
from oprag.llama_index.embeddings import as_embedder
from oprag.methods.answer import Completion, Usage, part, reported_reason, reported_usage
from oprag.methods.prompts import (
    OUR_PROMPTS,
    Message,
    Prompt,
    Prompts,
    Role,
    Template,
    TextTemplate,
    missing_fields,
    text_of,
)
from oprag.methods.run import Backend, Collected, completed
from oprag.methods.window import Window

__all__ = [
    "LlamaIndexBackend",
    "LlamaIndexTemplate",
    "as_template",
    "complete",
    "history_of",
    "shown_template",
    "usage_of",
    "window_of",
]

_SHOWN = "oprag"
"""The type of prompt templates that `shown_template` makes: LlamaIndex would not read their braces as we do."""

_ROLES: dict[MessageRole, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
}


def _sent(llm: LLM, prompt: Prompt, template: Template | None = None) -> list[ChatMessage] | str:
    """The input that `llm.predict` would send: messages to a chat model, one text to a completion model."""
    messages = [ChatMessage(role=message.role, content=message.content) for message in prompt.messages]
    parser = llm.output_parser
    if llm.metadata.is_chat_model:
        return llm._extend_messages(messages if parser is None else parser.format_messages(messages))  # noqa: SLF001
    inner = template.template if isinstance(template, LlamaIndexTemplate) else None
    text = prompt.text
    if isinstance(inner, ChatPromptTemplate) or getattr(inner, "is_chat_template", False):
        text = llm.messages_to_prompt(messages)  # type: ignore[misc]  # never None, since it has a default
    elif not isinstance(inner, RichPromptTemplate):
        text = llm.completion_to_prompt(text)  # type: ignore[misc]
    return llm._extend_prompt(text if parser is None else parser.format(text))  # noqa: SLF001


def window_of(llm: LLM, count_tokens: Callable[[str], int]) -> Window | None:
    """The context window of a model; None if unknown."""
    try:
        metadata = llm.metadata
        added = _sent(llm, Prompt((Message("user", ""),), "answer"))
    except Exception:  # noqa: BLE001 - the call itself raises the error
        return None
    # LlamaIndex uses its default for models whose window is unknown; it may be much smaller than the real one.
    window = metadata.context_window
    if window < 1 or window == DEFAULT_CONTEXT_WINDOW:
        return None
    texts = [added] if isinstance(added, str) else [message.content or "" for message in added]
    if isinstance(llm, StructuredLLM):
        texts += [llm.llm.system_prompt or "", json.dumps(llm.output_cls.model_json_schema())]
    reply = metadata.num_output if metadata.num_output > 0 else DEFAULT_NUM_OUTPUTS
    return Window(window, reply, sum(count_tokens(text) for text in texts if text))


class LlamaIndexTemplate:
    """A LlamaIndex prompt template as a `Template`, also with mapped variables or partial values."""

    def __init__(self, template: BasePromptTemplate) -> None:
        self.template = template
        # Map variable names of the user's template back to the names of the methods.
        mapped = {new: old for old, new in (template.template_var_mappings or {}).items()}
        self.fields = frozenset(mapped.get(name, name) for name in template.template_vars)

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """Format the template with these values."""
        partial = {*self.template.kwargs, *(self.template.function_mappings or {})}
        missing = sorted(self.fields - set(values) - partial)
        if missing:
            raise missing_fields(missing, values, self.template)
        given: dict[str, Any] = {
            name: text_of(value)
            for name, value in values.items()
            if name in self.fields and name not in self.template.kwargs
        }
        return tuple(_message_of(message) for message in self.template.format_messages(**given))


def as_template(template: Any, llm: Any = None) -> Template:
    """Wrap a LlamaIndex prompt template as a `Template`; one from `shown_template` is converted back."""
    if not isinstance(template, BasePromptTemplate):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(template).__name__}", template)
    if (text := _shown_text(template)) is not None:
        return text
    return LlamaIndexTemplate(template.select(llm) if isinstance(template, SelectorPromptTemplate) else template)


def shown_template(template: Template) -> BasePromptTemplate:
    """Convert a template to a LlamaIndex prompt template, for `get_prompts`; `{{` and `}}` are braces."""
    if isinstance(template, LlamaIndexTemplate):
        return template.template
    if isinstance(template, TextTemplate):
        if template.system is None:
            return PromptTemplate(template.user, _SHOWN)
        texts = ((MessageRole.SYSTEM, template.system), (MessageRole.USER, template.user))
        return ChatPromptTemplate([ChatMessage(role=role, content=text) for role, text in texts], _SHOWN)
    raise PromptError(f"{type(template).__name__} cannot be shown as a LlamaIndex prompt", template)


def _shown_text(template: BasePromptTemplate) -> TextTemplate | None:
    """The text template that was shown; None for others, and if a user has set a value or added a message."""
    if template.metadata.get("prompt_type") != _SHOWN or template.kwargs or template.output_parser:
        return None
    if isinstance(template, PromptTemplate):
        return TextTemplate(template.template)
    *system, user = [message.content or "" for message in getattr(template, "message_templates", [])]
    return TextTemplate(user, *system) if len(system) == 1 else None


def _message_of(message: ChatMessage) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        raise PromptError(f"a prompt may only contain system, user and assistant messages, got {message.role}", message)
    if any(block.block_type != "text" for block in message.blocks):
        raise PromptError("a prompt may only contain text; remove images and other content blocks", message)
    return Message(role, message.content or "")


def usage_of(response: Any) -> Usage | None:
    """The token usage that the model reported, if any; its location differs between integrations."""
    raw = getattr(response, "raw", None)
    return reported_usage(
        part(raw, "usage"), part(raw, "usage_metadata"), getattr(response, "additional_kwargs", None), raw
    )


def history_of(history: Any) -> tuple[Message, ...]:
    """Convert a conversation of LlamaIndex's chat messages; tool calls and their results are not part of it."""
    messages: list[Message] = []
    for message in history:
        if not isinstance(message, ChatMessage):
            raise QueryError(f"chat_history must be a list of chat messages, got {type(message).__name__}", message)
        if message.role in _ROLES and message.content:
            messages.append(Message(_ROLES[message.role], message.content))
    return tuple(messages)


@dataclass
class LlamaIndexBackend(Backend):
    """LlamaIndex's components."""

    llm: LLM
    search: Callable[[QueryBundle], Steps[Context]]  # searches for a query, and builds its context
    cache: VectorCache
    embed_model: Callable[[], Any]  # returns the embedding model or the `oprag.Embedder`
    prompts: Prompts

    def find(self, question: str | QueryBundle) -> Steps[Context]:
        """Search for a question, and build its context."""
        return self.search(QueryBundle(question) if isinstance(question, str) else question)

    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model."""
        return _called(self.llm, prompt, self.prompts)

    def opened(self, prompt: Prompt) -> tuple[Step, Collected] | None:
        """Open a stream of the model's reply; None for structured output, which cannot be parsed in pieces."""
        llm = self.llm
        if isinstance(llm, StructuredLLM) or llm.output_parser is not None:
            return None
        given = _sent(llm, prompt, getattr(self.prompts, prompt.step, None))
        if isinstance(given, str):
            step = Step(
                lambda: llm.stream_complete(given, formatted=True), lambda: llm.astream_complete(given, formatted=True)
            )
        else:
            step = Step(lambda: llm.stream_chat(given), lambda: llm.astream_chat(given))
        return step, _CollectedResponses()

    def embedding(self) -> tuple[Any, VectorCache]:
        """The embedder, and the cache of its vectors."""
        return as_embedder(self.embed_model()), self.cache


def complete(llm: LLM, prompt: Prompt, prompts: Prompts = OUR_PROMPTS) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(completed(_called(llm, prompt, prompts)))


def _called(llm: LLM, prompt: Prompt, prompts: Prompts) -> Steps[Completion]:
    given = _sent(llm, prompt, getattr(prompts, prompt.step, None))
    if isinstance(given, str):
        reply = yield Step(lambda: llm.complete(given, formatted=True), lambda: llm.acomplete(given, formatted=True))
    else:
        reply = yield Step(lambda: llm.chat(given), lambda: llm.achat(given))
    text = (reply.text if hasattr(reply, "text") else reply.message.content) or ""
    return Completion(
        llm._parse_output(text),  # noqa: SLF001 - as `predict` does
        reply.raw if isinstance(llm, StructuredLLM) else None,
        usage=usage_of(reply),
        finish_reason=_finish_reason(reply),
    )


class _CollectedResponses(Collected):
    """The responses of a stream."""

    def add(self, chunk: Any) -> str:
        """Add a response, and return its text."""
        self.usage = usage_of(chunk) or self.usage
        self.finish_reason = _finish_reason(chunk) or self.finish_reason
        self.texts.append(chunk.delta or "")
        return self.texts[-1]


def _finish_reason(response: Any) -> str | None:
    """The finish reason, as reported by the provider; its location differs between integrations."""
    raw = getattr(response, "raw", None)
    choices = part(raw, "choices") or part(raw, "candidates") or [raw]
    return reported_reason(choices[0], part(raw, "generation_info"), part(raw, "incomplete_details"))
