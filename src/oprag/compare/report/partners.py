"""Settings that are alike but for some axes."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import Any

from oprag.compare.setting import Setting

__all__ = ["nearest", "partners"]


def partners(
    settings: Sequence[Setting], others: Sequence[Setting], but_for: Collection[str]
) -> Iterator[tuple[Setting, Setting]]:
    """Each setting with the first of the others that has the same values, where both have one.

    Args:
        settings: The settings.
        others: What they are held against.
        but_for: The axes in which they may differ.
    """
    known: dict[frozenset[str], dict[Hashable, Setting]] = {}
    for setting in settings:
        for other in others:
            shared = frozenset(setting.values).intersection(other.values).difference(but_for)
            if shared not in known:
                by_values = known[shared] = {}
                for one in others:
                    if shared <= one.values.keys():
                        by_values.setdefault(_place(one, shared), one)
            found = known[shared].get(_place(setting, shared))
            if found is not None:
                yield setting, found
                break


def nearest(
    settings: Sequence[Setting], others: Sequence[Setting], same: Collection[str]
) -> Iterator[tuple[Setting, Setting]]:
    """Each setting with the one of the others that is most like it, where there is one; of equals the first.

    Args:
        settings: The settings.
        others: What they are held against.
        same: The axes in which they must not differ.
    """
    known: dict[Hashable, list[Setting]] = {}
    for one in others:
        known.setdefault(_place(one, same), []).append(one)
    for setting in settings:
        if alike := known.get(_place(setting, same)):
            yield setting, max(alike, key=lambda one: _equal_values(setting, one))


def _equal_values(setting: Setting, other: Setting) -> int:
    shared = setting.values.keys() & other.values.keys()
    return sum(_value(setting, name) == _value(other, name) for name in shared)


def _place(setting: Setting, names: Collection[str]) -> Hashable:
    return tuple((name, _value(setting, name)) for name in sorted(names))


def _value(setting: Setting, name: str) -> Hashable:
    """A value that only one of the same type is equal to."""
    value = setting.values[name]
    return str(type(value)), _plain(value)


def _plain(value: Any) -> Hashable:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
