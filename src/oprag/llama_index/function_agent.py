"""An agent that reads the results of its searches as one context, in the order of the sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import BaseMemory
from llama_index.core.tools import AsyncBaseTool
from pydantic import ConfigDict, Field, SkipValidation, ValidationInfo, field_validator

from oprag.agents.layouts import Layout, check_layout
from oprag.llama_index.search_results import lay_out_messages
from oprag.llama_index.tools import SearchTool

__all__ = ["OrderPreservingFunctionAgent"]


class OrderPreservingFunctionAgent(FunctionAgent):
    """A `FunctionAgent` that lays out the results of `create_search_tool` before each call of the model.

    Only the prompt changes: the agent's memory and events contain each result as the tool returned it. A pointer never
    refers to a message that is not in the prompt: if the memory dropped the message, its text is shown again.

    Args:
        layout: "delta": each search shows only what is new; earlier messages stay as they are, so the provider's
            prompt cache keeps working. "compact": before each call of the model, the last search result becomes the
            whole context, in source order, and earlier results become pointers.
        compact_above: With "compact": results stay as in "delta" until they have more than this number of tokens in
            total.
        *args: The arguments of `FunctionAgent`.
        **options: The keyword arguments of `FunctionAgent`.

    Raises:
        ValidationError: `layout` or `compact_above` is invalid (pydantic's error, which is a ValueError).

    Example:
        >>> agent = OrderPreservingFunctionAgent(
        ...     llm=llm, tools=[create_search_tool(index)], layout="compact"
        ... )  # doctest: +SKIP
    """

    # The input may contain API keys.
    model_config = ConfigDict(hide_input_in_errors=True, extra="forbid")

    layout: SkipValidation[Layout] = Field(
        default="delta", description='Layout of search results in the prompt: "delta" or "compact".'
    )
    compact_above: SkipValidation[int] = Field(
        default=0,
        description='With layout="compact": use "delta" until search results have more than this number of tokens.',
    )

    def __init__(self, *args: Any, layout: Layout = "delta", compact_above: int = 0, **options: Any) -> None:
        super().__init__(*args, layout=layout, compact_above=compact_above, **options)

    @field_validator("layout", mode="before")
    @classmethod
    def _check_layout(cls, value: Any) -> Any:
        check_layout(value, 0)
        return value

    @field_validator("compact_above", mode="before")
    @classmethod
    def _check_compact_above(cls, value: Any, given: ValidationInfo) -> Any:
        check_layout(given.data.get("layout", "compact"), value)
        return value

    async def take_step(
        self, ctx: Any, llm_input: list[ChatMessage], tools: Sequence[AsyncBaseTool], memory: BaseMemory
    ) -> AgentOutput:
        """Call the model with the search results arranged by the layout."""
        kept: list[ChatMessage] = await ctx.store.get(self.scratchpad_key, default=[])
        given = [*llm_input, *kept]
        options = next((tool.options for tool in tools if isinstance(tool, SearchTool)), None)
        shown = await lay_out_messages(ctx, given, options, layout=self.layout, compact_above=self.compact_above)
        store = _StoreView(ctx.store, self.scratchpad_key, kept, shown[len(llm_input) :])
        view: Any = _ContextView(ctx, store)
        return await super().take_step(view, shown[: len(llm_input)], tools, memory)


class _ContextView:
    """A workflow context whose scratchpad is laid out for the model."""

    def __init__(self, ctx: Any, store: _StoreView) -> None:
        self._ctx = ctx
        self.store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


class _StoreView:
    """A store that returns the scratchpad laid out for the model, and saves it as the tools wrote it."""

    def __init__(self, store: Any, key: str, kept: Sequence[ChatMessage], shown: list[ChatMessage]) -> None:
        self._store, self._key, self._kept, self._shown = store, key, kept, shown
        # The agent appends its messages to `shown`.
        self._length = len(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def get(self, path: str, default: Any = ...) -> Any:
        """Return the scratchpad laid out for the model, or another value of the store."""
        return self._shown if path == self._key else await self._store.get(path, default=default)

    async def set(self, path: str, value: Any) -> None:
        """Save the original scratchpad with the agent's new messages, or another value unchanged."""
        added = [*self._kept, *value[self._length :]] if path == self._key else value
        await self._store.set(path, added)
