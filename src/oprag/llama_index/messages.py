"""Convert LlamaIndex's messages, prompt templates and replies to those of the methods, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.constants import DEFAULT_CONTEXT_WINDOW, DEFAULT_NUM_OUTPUTS
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate, ChatPromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.rich import RichPromptTemplate

from oprag.errors import PromptError, QueryError
from oprag.methods.model_calls import Message, Prompt, Role, Usage, part, reported_usage
from oprag.methods.prompts import Template, TextTemplate, missing_fields, text_of
from oprag.methods.window import Window

__all__ = [
    "LlamaIndexTemplate",
    "as_template",
    "history_of",
    "sent",
    "shown_template",
    "usage_of",
    "window_of",
]

_ROLES: dict[MessageRole, Role] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
}


def sent(llm: LLM, prompt: Prompt, template: Template | None = None) -> list[ChatMessage] | str:
    """The input that `llm.predict` would send: messages to a chat model, one text to a completion model."""
    messages = [ChatMessage(role=message.role, content=message.content) for message in prompt.messages]
    parser = llm.output_parser
    if llm.metadata.is_chat_model:
        return llm._extend_messages(messages if parser is None else parser.format_messages(messages))  # noqa: SLF001
    inner = template.template if isinstance(template, LlamaIndexTemplate) else None
    text = prompt.text
    is_chat = isinstance(inner, ChatPromptTemplate) or getattr(inner, "is_chat_template", False)
    if is_chat and not isinstance(inner, _ShownTemplate):
        text = llm.messages_to_prompt(messages)  # type: ignore[misc]  # never None, since it has a default
    elif not isinstance(inner, RichPromptTemplate):
        text = llm.completion_to_prompt(text)  # type: ignore[misc]
    return llm._extend_prompt(text if parser is None else parser.format(text))  # noqa: SLF001


def window_of(llm: LLM, count_tokens: Callable[[str], int]) -> Window | None:
    """The context window of a model; None if unknown."""
    try:
        metadata = llm.metadata
        added = sent(llm, Prompt((Message("user", ""),), "answer"))
    except Exception:  # noqa: BLE001 - the call itself raises the error
        return None
    # LlamaIndex uses its default for models whose window is unknown; it may be much smaller than the real one.
    window = metadata.context_window
    if type(window) is not int or window < 1 or window == DEFAULT_CONTEXT_WINDOW:
        return None
    texts = [added] if isinstance(added, str) else [message.content or "" for message in added]
    if isinstance(llm, StructuredLLM):
        texts += [llm.llm.system_prompt or "", json.dumps(llm.output_cls.model_json_schema())]
    reply = metadata.num_output if metadata.num_output > 0 else DEFAULT_NUM_OUTPUTS
    return Window(window, reply, sum(count_tokens(text) for text in texts if text))


class LlamaIndexTemplate:
    """A LlamaIndex prompt template as a `Template`.

    Args:
        template: Any prompt template, including one with mapped variables or partial values.
    """

    def __init__(self, template: BasePromptTemplate) -> None:
        self.template = template
        # Map variable names of the user's template back to the names of the methods.
        mapped = {new: old for old, new in (template.template_var_mappings or {}).items()}
        functions = set(template.function_mappings or {})
        self.fields = frozenset(mapped.get(name, name) for name in _variables(template)) | functions

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


def _variables(template: BasePromptTemplate) -> set[str]:
    found = set(template.template_vars)
    return found | (set(template.kwargs) if isinstance(template, RichPromptTemplate) else set())


class _ShownTemplate(ChatPromptTemplate):  # type: ignore[no-redef]
    """A text template in `get_prompts`: its original texts, with `{{` and `}}` for braces.

    LlamaIndex cannot escape a brace before a name, so this class fills in the fields itself.
    """

    @classmethod
    def of(cls, template: TextTemplate) -> _ShownTemplate:
        texts: list[tuple[Role, str]] = [("system", template.system)] if template.system is not None else []
        texts.append(("user", template.user))
        shown = cls([ChatMessage(role=role, content=text) for role, text in texts])  # type: ignore[call-arg]
        shown.template_vars = sorted(template.fields)
        return shown

    @property
    def as_text(self) -> TextTemplate | None:
        """The original text template; None if a user has set a value, mapped a name or added a message."""
        if self.kwargs or self.template_var_mappings or self.function_mappings or self.output_parser:
            return None
        texts = [(message.role.value, message.content or "") for message in self.message_templates]
        match texts:
            case [("user", user)]:
                return TextTemplate(user)
            case [("system", system), ("user", user)]:
                return TextTemplate(user, system)
        return None

    def format_messages(self, llm: Any = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        messages = self._filled(kwargs)
        return messages if self.output_parser is None else self.output_parser.format_messages(messages)

    def format(
        self,
        llm: Any = None,  # noqa: ARG002
        messages_to_prompt: Any = None,  # noqa: ARG002
        completion_to_prompt: Callable[[str], str] | None = None,
        **kwargs: Any,
    ) -> str:
        """Format the template as one text, for completion models."""
        text = "\n\n".join([message.content or "" for message in self._filled(kwargs)])
        if self.output_parser is not None:
            text = self.output_parser.format(text)
        return text if completion_to_prompt is None else completion_to_prompt(text)

    def _filled(self, given: Mapping[str, Any]) -> list[ChatMessage]:
        values = self._map_all_vars({**self.kwargs, **given})
        return [_filled(message, values) for message in self.message_templates]


def _filled(message: ChatMessage, values: Mapping[str, Any]) -> ChatMessage:
    """Fill in the fields of a message that have values, and keep the other fields, as LlamaIndex does."""
    template = TextTemplate(message.content or "")
    (text,) = template.messages({**{name: f"{{{name}}}" for name in template.fields}, **values})
    return ChatMessage(role=message.role, content=text.content)


def as_template(template: Any, llm: Any = None) -> Template:
    """Wrap a LlamaIndex prompt template as a `Template`; one from `shown_template` is converted back."""
    if not isinstance(template, BasePromptTemplate):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(template).__name__}", template)
    if isinstance(template, _ShownTemplate) and (text := template.as_text) is not None:
        return text
    return LlamaIndexTemplate(template.select(llm) if isinstance(template, SelectorPromptTemplate) else template)


def shown_template(template: Template) -> BasePromptTemplate:
    """Convert a template to a LlamaIndex prompt template, for `get_prompts`."""
    if isinstance(template, LlamaIndexTemplate):
        return template.template
    if isinstance(template, TextTemplate):
        return _ShownTemplate.of(template)
    raise PromptError(f"{type(template).__name__} cannot be shown as a LlamaIndex prompt", template)


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
        if isinstance(message, Message):
            messages.append(message)
            continue
        if not isinstance(message, ChatMessage):
            raise QueryError(f"chat_history must be a list of chat messages, got {type(message).__name__}", message)
        if message.role in _ROLES and message.content:
            messages.append(Message(_ROLES[message.role], message.content))
    return tuple(messages)
