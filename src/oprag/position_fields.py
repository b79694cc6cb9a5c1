"""The options of adapters for positions that metadata do not tell, as pydantic fields: `read_source`, `store_order`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, SkipValidation, field_validator

from oprag.context import ContextInputs
from oprag.files.source_reader import ReadSource, SourceReader, as_reader
from oprag.option_fields import OptionFields
from oprag.options import ContextOptions, check_bool
from oprag.steps import Steps
from oprag.stores.adapter import StoreAdapter
from oprag.stores.listing import all_chunks
from oprag.stores.order_cache import InsertionOrderCache

if TYPE_CHECKING:
    from oprag.positions.source_texts import SourceTexts

__all__ = ["ReadSourceFields", "StoreOrderFields"]


class ReadSourceFields(OptionFields):
    """Where the texts of whole sources come from."""

    read_source: SkipValidation[ReadSource | None] = Field(
        default=None,
        description="Reads the whole text of a source: a folder of text, Markdown and PDF files, a mapping of source "
        "names to texts, or a function of the name. Chunks whose metadata do not tell their order are looked for in "
        "it; long_context and self_route need it.",
        exclude=True,
        repr=False,
    )
    _texts: Any = PrivateAttr(default=None)
    _texts_of: Any = PrivateAttr(default=None)

    @field_validator("read_source", mode="before")
    @classmethod
    def _check_read_source(cls, value: Any) -> Any:
        as_reader(value)
        return value

    @property
    def _source_texts(self) -> SourceTexts | None:
        # Made when it is needed, and anew where another value was assigned.
        if self._texts_of is not self.read_source:
            # Loaded by those who give it.
            from oprag.positions.source_texts import SourceTexts

            reader = as_reader(self.read_source)
            self._texts = None if reader is None else SourceTexts(reader)
            self._texts_of = self.read_source
        return self._texts  # type: ignore[no-any-return]

    @property
    def _reader(self) -> SourceReader | None:
        texts = self._source_texts
        return None if texts is None else texts.reader

    def _located(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        filter: Callable[[], Any] = lambda: None,
        stores: Callable[[], Collection[StoreAdapter]] = tuple,
        *,
        store_order: bool = False,
    ) -> Steps[ContextInputs]:
        """The inputs with the places of chunks in the texts of their sources, where nothing else tells their order."""
        texts = self._source_texts
        assert texts is not None  # noqa: S101 - called with read_source
        listed = lambda chunks: all_chunks(chunks, stores(), options.source_key, store_order=store_order)  # noqa: E731
        return (yield from texts.complete(inputs, options, filter, listed))


class StoreOrderFields(OptionFields):
    """Whether order may come from the store, for what knows the store that is searched."""

    store_order: SkipValidation[bool] = Field(
        default=True,
        description="Use the sequence in which the store received the chunks of a source where nothing else tells "
        "their order.",
    )
    _order_cache: InsertionOrderCache = PrivateAttr(default_factory=InsertionOrderCache)
    # Set by search tools, whose results are put in order together with those of other searches.
    _place_each: bool = PrivateAttr(default=False)

    def _for_many_searches(self) -> Self:
        """A copy that finds the place of single chunks, too."""
        copy = self.model_copy()
        copy._place_each = True  # noqa: SLF001
        return copy

    @field_validator("store_order", mode="before")
    @classmethod
    def _check_store_order(cls, value: Any) -> Any:
        check_bool("store_order", value)
        return value
