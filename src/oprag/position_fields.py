"""Adapter options for positions that metadata does not contain, as pydantic fields: `read_source`, `store_order`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PrivateAttr, SkipValidation, field_validator

from oprag.context import ContextInputs
from oprag.files.source_reader import ReadSource, SourceReader, as_reader
from oprag.option_fields import OptionFields
from oprag.options import ContextOptions, check_bool
from oprag.steps import Steps
from oprag.stores.adapter import StoreAdapter
from oprag.stores.orders import SourceOrders

if TYPE_CHECKING:
    from oprag.positions.source_texts import SourceTexts

__all__ = ["ReadSourceFields", "StoreOrderFields"]


class ReadSourceFields(OptionFields):
    """The `read_source` option: reads the full text of a source."""

    read_source: SkipValidation[ReadSource | None] = Field(
        default=None,
        description="Full texts of the sources: a folder, a mapping of names to texts, a function of the name, or the "
        "documents of a loader. Used "
        "to locate chunks without a position, and required by long_context and self_route.",
        exclude=True,
        repr=False,
    )
    _orders: SourceOrders = PrivateAttr(default_factory=SourceOrders)
    _texts: Any = PrivateAttr(default=None)
    _texts_of: Any = PrivateAttr(default=None)

    @field_validator("read_source", mode="before")
    @classmethod
    def _check_read_source(cls, value: Any) -> Any:
        as_reader(value)
        return value

    @property
    def _source_texts(self) -> SourceTexts | None:
        # Created on first access, and again after another value was assigned.
        if self._texts_of is not self.read_source:
            # Imported only if the option is set.
            from oprag.positions.source_texts import SourceTexts

            reader = as_reader(self.read_source)
            self._texts = None if reader is None else SourceTexts(reader)
            self._texts_of = self.read_source
        return self._texts  # type: ignore[no-any-return]

    @property
    def _reader(self) -> SourceReader | None:
        texts = self._source_texts
        return None if texts is None else texts.reader

    def _with_places(
        self,
        inputs: ContextInputs,
        options: ContextOptions,
        stores: Sequence[StoreAdapter] = (),
        filter: Callable[[], Any] = lambda: None,
    ) -> Steps[ContextInputs]:
        """The inputs, with the places of chunks whose metadata do not tell their order."""
        return self._orders.complete(inputs, options, stores, self._source_texts, filter)


class StoreOrderFields(OptionFields):
    """The `store_order` option, for classes that have access to the searched store."""

    store_order: SkipValidation[bool] = Field(
        default=True,
        description="Use the order in which chunks were inserted into the store if the order is otherwise unknown.",
    )
    # Set by search tools, whose results are ordered together with the results of other searches.
    _place_each: bool = PrivateAttr(default=False)

    def _for_many_searches(self) -> Self:
        """A copy that also finds the position of a source's only retrieved chunk."""
        copy = self.model_copy()
        copy._place_each = True  # noqa: SLF001
        return copy

    @field_validator("store_order", mode="before")
    @classmethod
    def _check_store_order(cls, value: Any) -> Any:
        check_bool("store_order", value)
        return value
