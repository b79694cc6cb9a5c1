"""Experiments in TOML files."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oprag.compare.data import DataSet, read_data
from oprag.compare.data.read import format_options
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.spec import with_name
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits, Price
from oprag.compare.spec.trust import AskTrust, check_trust
from oprag.compare.spec.validation import validated
from oprag.errors import ExperimentError, MissingExtraError, OpragError, OptionError
from oprag.files.reading import read_toml
from oprag.masking import describe
from oprag.options import check_names

__all__ = ["read_experiment"]

_KEYS = tuple(Experiment.model_fields)
_OF_DATA = ("path", "format", "questions", "seed")
_PATHS = ("path", "documents")
_TABLES = ("data", "models", "embedders", "stores", "prompts", "prices", "limits")
_TEXTS = ("name", "count_tokens")
_SECRET = re.compile(
    r"(.*_)?(api_?key|access_key|secret(_key)?|password|passwd|credentials?|(access|api|auth|bearer|hf|session)_token)"
    r"|token|authorization",
    re.IGNORECASE,
)
_KINDS = {str: "a text", int: "a whole number", dict: "a table"}


def read_experiment(
    path: str | os.PathLike[str], *, trust: bool | AskTrust = False, changes: Mapping[str, Any] | None = None
) -> Experiment:
    """The experiment that a TOML file describes; `docs/comparing.md` has all of its keys.

    A file can name functions to call, addresses to send data to, and files to read. Without trust such a file is
    refused before any of that happens, and only files in its folder are read. An `Experiment` made in Python is
    trusted: it is the caller's own code.

    Args:
        path: The file. Paths of data in it are relative to its folder.
        trust: Whether the file may run code and reach other hosts and folders; or a function that says so, which is
            called with the parts that need trust, as in `UntrustedExperimentError.needs`.
        changes: What stands in place of values of the file: a table is changed key by key.

    Raises:
        UntrustedExperimentError: Parts of the file need trust and are not trusted; `needs` has them.
        InputFileError: The file, or one of the files of data, is missing or cannot be read.
        ExperimentError: The file is no TOML, or says what cannot be; the message names the file and the key.
        DataError: Something in the data is not as its format says.
        PromptError: A prompt cannot be used.
        MissingExtraError: What reads the data is not installed.
        OptionError: `trust` is neither a truth value nor a function.
    """
    if not isinstance(trust, bool) and not callable(trust):
        raise OptionError(f"trust must be True, False or a function, got {describe(trust)}", trust)
    place = Path(path)
    given = _changed(read_toml(place, "experiment", ExperimentError), changes or {})
    with _at(place.name):
        _check(given)
        # Before anything of a table is shown.
        _check_secrets(given)
        trusted = check_trust(given, place.parent, trust=trust)
        made = {**given, **_made(given, place.parent, trusted=trusted)}
        experiment = Experiment(**made)
        with _at("grid"):
            _ = experiment.grid_cells
    return experiment


def _changed(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    changed = dict(given)
    for name, value in changes.items():
        old = changed.get(name)
        changed[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, Mapping) else value
    return changed


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say where it was what is raised within."""
    try:
        yield
    except MissingExtraError:
        raise
    except OpragError as error:
        kind = ExperimentError if isinstance(error, OptionError) else type(error)
        raise kind(f"{place}: {error}", error.value) from error


def _check(given: Mapping[str, Any]) -> None:
    """Refuse unknown keys and wrong types."""
    _check_keys(given, _KEYS, "")
    for name in ("name", "data", "grid"):
        if name not in given:
            raise ExperimentError(f"there is no {name!r}, which every experiment must have", name)
    for name in _TEXTS:
        if name in given:
            _check_kind(given[name], str, name)
    for name in _TABLES:
        if name in given:
            _check_kind(given[name], dict, name)
    grid = given["grid"]
    if not isinstance(grid, dict) and not (isinstance(grid, list) and all(isinstance(one, dict) for one in grid)):
        raise ExperimentError(f"grid must be a table, or several as [[grid]], got {_shown(grid)}", grid)
    metrics = given.get("metrics", [])
    if not isinstance(metrics, list) or not all(isinstance(name, str) for name in metrics):
        raise ExperimentError(f"metrics must be a list of texts, got {_shown(metrics)}", metrics)


def _made(given: Mapping[str, Any], folder: Path, *, trusted: bool) -> dict[str, Any]:
    """What a table alone says, each told apart so that a message can name it."""
    made: dict[str, Any] = {}
    for part, kind in (("models", ModelSpec), ("embedders", EmbedderSpec)):
        if part in given:
            made[part] = {name: _spec(kind, f"{part}.{name}", name, one) for name, one in given[part].items()}
    if "score_embedder" in given:
        made["score_embedder"] = _spec(EmbedderSpec, "score_embedder", None, given["score_embedder"])
    if "stores" in given:
        made["stores"] = {name: _store(f"stores.{name}", one) for name, one in given["stores"].items()}
    if "prices" in given:
        made["prices"] = {
            name: validated(Price, price, place=f"prices.{name}") for name, price in given["prices"].items()
        }
    if "limits" in given:
        made["limits"] = validated(Limits, given["limits"], place="limits")
    # At last, since it takes longest.
    within = None if trusted else folder
    made["data"] = {name: _data(f"data.{name}", name, one, folder, within) for name, one in given["data"].items()}
    return made


def _spec(kind: Any, place: str, name: str | None, given: Any) -> Any:
    if not isinstance(given, str):
        _check_kind(given, dict, place)
        if "use" not in given:
            raise ExperimentError(f'{place} must say what to use, such as use = "local"', given)
        _check_kind(given["use"], str, f"{place}.use")
    return validated(kind, given if name is None else with_name(given, name), place=place)


def _store(place: str, given: Any) -> str:
    if not isinstance(given, str):
        _check_kind(given, dict, place)
        _check_keys(given, ("use",), place)
        given = given.get("use")
    if not isinstance(given, str) or ":" not in given:
        raise ExperimentError(f'{place} must be use = "MODULE:FUNCTION", got {_shown(given)}', given)
    return given


def _data(place: str, name: str, given: Any, folder: Path, within: Path | None) -> DataSet:
    _check_kind(given, dict, place)
    with _at(place):
        known = format_options(given.get("format", "oprag"))
    _check_keys(given, (*_OF_DATA, *known), place)
    if "path" not in given:
        raise ExperimentError(f"{place} has no path", given)
    options = dict(given)
    for option in _PATHS:
        if option in given:
            _check_kind(given[option], str, f"{place}.{option}")
            options[option] = folder / given[option]
    count, seed = options.pop("questions", None), options.pop("seed", None)
    for option, value in (("questions", count), ("seed", seed)):
        if value is not None:
            _check_kind(value, int, f"{place}.{option}")
    if count is not None and count < 1:
        raise ExperimentError(f"{place}.questions must be a whole number from 1, got {count}", count)
    if seed is not None and count is None:
        raise ExperimentError(f"{place}.seed goes with {place}.questions, which says how many are drawn", seed)
    with _at(place):
        return read_data(options.pop("path"), name=name, within=within, **options).sample(count, seed or 0)


def _check_secrets(given: Mapping[str, Any]) -> None:
    tables = {f"{part}.{name}": one for part in ("models", "embedders") for name, one in given.get(part, {}).items()}
    for place, table in {**tables, "score_embedder": given.get("score_embedder")}.items():
        if isinstance(table, Mapping):
            _check_no_secrets(table, place)


def _check_no_secrets(given: Mapping[str, Any], place: str) -> None:
    for name, value in given.items():
        if _SECRET.fullmatch(name.replace("-", "_")):
            raise ExperimentError(
                f"{place}.{name} would be a secret in a file that is passed on; leave it out, and set the environment "
                "variable that the provider reads, such as OPENAI_API_KEY, or name another one in api_key_env",
                name,
            )
        if isinstance(value, Mapping):
            _check_no_secrets(value, f"{place}.{name}")


def _check_keys(given: Mapping[str, Any], known: Collection[str], place: str) -> None:
    try:
        check_names(given, known)
    except OptionError as error:
        name = f"{place}.{error.value}" if place else str(error.value)
        _, _, hint = str(error).partition("; ")
        raise ExperimentError(f"there is no key {name}; {hint}", error.value) from error


def _check_kind(value: Any, kind: type, name: str) -> None:
    if type(value) is not kind:
        raise ExperimentError(f"{name} must be {_KINDS[kind]}, got {_shown(value)}", value)


def _shown(value: Any) -> str:
    return "a table" if isinstance(value, dict) else describe(value)
