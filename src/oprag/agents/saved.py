"""The saved form of a working context: a log with one record for each search, which later searches do not change."""

from collections.abc import Mapping
from typing import Any

from oprag._internal.masking import describe
from oprag.agents.identity import identities
from oprag.agents.memory import Memory, Search
from oprag.agents.numbered_text import clean_note
from oprag.chunk import Place, changed
from oprag.errors import MissingExtraError
from oprag.options import ContextOptions

try:
    from pydantic import TypeAdapter, ValidationError
except ImportError as error:
    raise MissingExtraError("Saving a working context", "pydantic", "pip install pydantic") from error

__all__ = ["Saved", "read", "written"]

_VERSION = 2
_log: TypeAdapter[list[Search | list[str]]] = TypeAdapter(list[Search | list[str]])


class Saved(dict[str, Any]):
    """A saved working context, with what it was saved from; copies and checkpoints are plain dictionaries."""

    memory: Memory
    options: ContextOptions

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def written(memory: Memory, options: ContextOptions) -> Saved:
    """The saved form of a memory; only what was added since it was saved last is converted."""
    memory.saved += _log.dump_python(memory.log[len(memory.saved) :], mode="json", exclude_defaults=True)
    saved = Saved(version=_VERSION, log=memory.saved.copy())
    saved.memory, saved.options = memory, options
    return saved


def read(data: Mapping[str, Any], options: ContextOptions) -> Memory:
    """The memory of a saved form; ValueError, TypeError or KeyError if it is corrupt, or from another version."""
    if isinstance(data, Saved) and data.options == options:
        return data.memory
    version = data["version"]
    if version != _VERSION:
        newer = type(version) is int and version > _VERSION
        todo = "upgrade oprag" if newer else "remove it from the state, and search results are gathered again"
        raise ValueError(f"version {describe(version)}, expected {_VERSION}; {todo}")
    memory = Memory()
    try:
        log = _log.validate_python(data["log"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"log.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    for entry in log:
        if isinstance(entry, list):
            memory.forget(entry)
        else:
            _add(entry, memory)
    memory.saved = list(data["log"])
    return memory


def _add(search: Search, memory: Memory) -> None:
    """Add a search that was read, with its chunks."""
    known = len(memory.chunks) + len(search.new)
    found = {number for number, _ in search.found}
    numbers = {*found, *(number for number, _ in search.places)}
    if (
        search.note != clean_note(search.note)
        or len(found) < len(search.found)
        or not found.issuperset(search.shown)
        or any(not 1 <= one <= known for one in numbers)
    ):
        raise ValueError(f"the search {describe(search.name)} is invalid")
    for chunk, span in zip(search.new, search.spans, strict=True):
        placed = chunk if chunk.place is None else changed(chunk, place=_place(chunk.place))
        memory.append(placed, span, identities(placed))
    for number, place in search.places:
        memory.place(number, _place(place))
    memory.add(search)


def _place(place: Place) -> Place:
    """A place with tuples for the lists in its keys, which JSON has instead."""
    doubts = tuple(doubt._replace(group=_as_tuples(doubt.group)) for doubt in place.uncertain)
    return place._replace(key=_as_tuples(place.key), uncertain=doubts)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value
