import pytest

from oprag import OptionError
from oprag.langchain.stores import StoreAdapter
from oprag.stores.adapter_table import AdapterTable


class Store:
    pass


class Special(Store):
    pass


def adapter() -> StoreAdapter:
    return StoreAdapter(lambda store, keys, search: {})


def table() -> AdapterTable[StoreAdapter]:
    return AdapterTable(StoreAdapter, "oprag.langchain.stores", {"collections.OrderedDict": "in_memory"})


def test_what_is_registered_holds_for_subclasses_and_the_nearest_class_counts():
    mine, special, adapters = adapter(), adapter(), table()
    adapters.register(Store, mine)
    assert adapters.of(Special()) is mine
    adapters.register(Special, special)
    assert adapters.of(Special()) is special
    assert adapters.of(Store()) is mine
    assert adapters.of(object()) is None


def test_a_module_is_loaded_when_its_class_comes_along():
    from collections import OrderedDict

    from oprag.langchain.stores.in_memory import ADAPTER

    adapters = table()
    assert adapters.of(OrderedDict()) is ADAPTER
    mine = adapter()
    adapters.register(OrderedDict, mine)
    assert adapters.of(OrderedDict()) is mine


def test_something_else_than_an_adapter_is_refused():
    with pytest.raises(OptionError, match="adapter must be a StoreAdapter, got function"):
        table().register(Store, lambda: None)  # type: ignore[arg-type]
