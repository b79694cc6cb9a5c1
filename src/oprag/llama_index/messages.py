"""LlamaIndex's messages, prompt templates and models' replies, in the words of the methods and back."""

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
from oprag.methods.model_calls import Message, Prompt, Role, Usage, as_text
from oprag.methods.prompts import Template, TextTemplate
from oprag.methods.window import Window

__all__ = [
    "LlamaIndexTemplate",
    "as_template",
    "history_of",
    "part",
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
_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "eval_count")


def sent(llm: LLM, prompt: Prompt, template: Template | None = None) -> list[ChatMessage] | str:
    """What `llm.predict` would send: messages to a chat model, one text to a model that completes texts."""
    messages = [ChatMessage(role=message.role, content=message.content) for message in prompt.messages]
    parser = llm.output_parser
    if llm.metadata.is_chat_model:
        return llm._extend_messages(messages if parser is None else parser.format_messages(messages))  # noqa: SLF001
    theirs = template.template if isinstance(template, LlamaIndexTemplate) else None
    text = prompt.text
    chats = isinstance(theirs, ChatPromptTemplate) or getattr(theirs, "is_chat_template", False)
    if chats and not isinstance(theirs, _ShownTemplate):
        text = llm.messages_to_prompt(messages)  # type: ignore[misc]  # never None: there is a default
    elif not isinstance(theirs, RichPromptTemplate):
        text = llm.completion_to_prompt(text)  # type: ignore[misc]
    return llm._extend_prompt(text if parser is None else parser.format(text))  # noqa: SLF001


def window_of(llm: LLM, count_tokens: Callable[[str], int]) -> Window | None:
    """The context window of a model; None where it does not say."""
    try:
        about = llm.metadata
        added = sent(llm, Prompt((Message("user", ""),), "answer"))
    except Exception:  # noqa: BLE001 - a model that cannot be asked says so when it is called
        return None
    # LlamaIndex's default is what a model has that does not say; its readers then cut what the real one could take.
    window = about.context_window
    if type(window) is not int or window < 1 or window == DEFAULT_CONTEXT_WINDOW:
        return None
    texts = [added] if isinstance(added, str) else [message.content or "" for message in added]
    if isinstance(llm, StructuredLLM):
        texts += [llm.llm.system_prompt or "", json.dumps(llm.output_cls.model_json_schema())]
    replies = about.num_output if about.num_output > 0 else DEFAULT_NUM_OUTPUTS
    return Window(window, replies, sum(count_tokens(text) for text in texts if text))


class LlamaIndexTemplate:
    """A LlamaIndex prompt template as a `Template`.

    Args:
        template: Any prompt template; its variables may be mapped, and some of them may be set.
    """

    def __init__(self, template: BasePromptTemplate) -> None:
        self.template = template
        # What a user maps to another name is asked for by the name that the user's template has for us.
        mapped = {new: old for old, new in (template.template_var_mappings or {}).items()}
        functions = set(template.function_mappings or {})
        self.fields = frozenset(mapped.get(name, name) for name in _variables(template)) | functions

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages, with these values in the fields."""
        set_before = {*self.template.kwargs, *(self.template.function_mappings or {})}
        missing = sorted(self.fields - set(values) - set_before)
        if missing:
            raise PromptError(
                f"the prompt wants {', '.join(f'{{{name}}}' for name in missing)}, which has no value here; there are "
                f"{', '.join(sorted(values))}",
                self.template,
            )
        given: dict[str, Any] = {
            name: _text(value)
            for name, value in values.items()
            if name in self.fields and name not in self.template.kwargs
        }
        return tuple(_message_of(message) for message in self.template.format_messages(**given))


def _variables(template: BasePromptTemplate) -> set[str]:
    found = set(template.template_vars)
    return found | (set(template.kwargs) if isinstance(template, RichPromptTemplate) else set())


class _ShownTemplate(ChatPromptTemplate):  # type: ignore[no-redef]
    """A text template as LlamaIndex lists it: its texts as they were written, with `{{` and `}}` for braces.

    LlamaIndex has no way to write a brace before a name, so this class fills in the fields itself.
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
        """The text template that this is; None where a user has set a value, mapped a name or added a message."""
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
        """One text, as models read it that complete texts."""
        text = "\n\n".join([message.content or "" for message in self._filled(kwargs)])
        if self.output_parser is not None:
            text = self.output_parser.format(text)
        return text if completion_to_prompt is None else completion_to_prompt(text)

    def _filled(self, given: Mapping[str, Any]) -> list[ChatMessage]:
        values = self._map_all_vars({**self.kwargs, **given})
        return [_filled(message, values) for message in self.message_templates]


def _filled(message: ChatMessage, values: Mapping[str, Any]) -> ChatMessage:
    """A message with the fields filled in for which there are values; LlamaIndex leaves the others as they are."""
    template = TextTemplate(message.content or "")
    (text,) = template.messages({**{name: f"{{{name}}}" for name in template.fields}, **values})
    return ChatMessage(role=message.role, content=text.content)


def as_template(template: Any, llm: Any = None) -> Template:
    """A LlamaIndex prompt template as a `Template`; one that was shown here is what it was before."""
    if not isinstance(template, BasePromptTemplate):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(template).__name__}", template)
    if isinstance(template, _ShownTemplate) and (text := template.as_text) is not None:
        return text
    return LlamaIndexTemplate(template.select(llm) if isinstance(template, SelectorPromptTemplate) else template)


def shown_template(template: Template) -> BasePromptTemplate:
    """A template as LlamaIndex lists it."""
    if isinstance(template, LlamaIndexTemplate):
        return template.template
    if isinstance(template, TextTemplate):
        return _ShownTemplate.of(template)
    raise PromptError(f"{type(template).__name__} cannot be shown as a LlamaIndex prompt", template)


def _text(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(part, Message) for part in value):
        return as_text(value)
    return str(value)


def _message_of(message: ChatMessage) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        raise PromptError(f"a prompt can hold messages of system, user and assistant, got {message.role}", message)
    if any(block.block_type != "text" for block in message.blocks):
        raise PromptError("a prompt can hold text only", message)
    return Message(role, message.content or "")


def usage_of(response: Any) -> Usage | None:
    """The model's own count of tokens, where it gave one; integrations leave it in several places."""
    raw = getattr(response, "raw", None)
    for place in (part(raw, "usage"), part(raw, "usage_metadata"), getattr(response, "additional_kwargs", None), raw):
        read, written = _first(place, _INPUT), _first(place, _OUTPUT)
        if read is not None and written is not None:
            details = part(place, "prompt_tokens_details") or part(place, "input_tokens_details")
            return Usage(read, written, _first(details, ("cached_tokens",)) or 0)
    return None


def part(holder: Any, name: str) -> Any:
    """An item of a mapping or an attribute of an object, None where there is none."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _first(holder: Any, names: tuple[str, ...]) -> int | None:
    return next((value for name in names if isinstance(value := part(holder, name), int)), None)


def history_of(history: Any) -> tuple[Message, ...]:
    """A conversation, in LlamaIndex's chat messages or our own; calls of tools and their results were never said."""
    messages: list[Message] = []
    for message in history:
        if isinstance(message, Message):
            messages.append(message)
            continue
        if not isinstance(message, ChatMessage):
            raise QueryError(f"chat_history must be chat messages, got {type(message).__name__} in it", message)
        if message.role in _ROLES and message.content:
            messages.append(Message(_ROLES[message.role], message.content))
    return tuple(messages)
