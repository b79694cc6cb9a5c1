"""Vector stores of an experiment: by their names, and of a user's own."""

from oprag.compare.stores.opening import STORE_NAMES, open_store, store_name

__all__ = ["STORE_NAMES", "open_store", "store_name"]
