"""The experiment of a sweep: token budgets and orders that fit the documents and questions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter, count
from oprag.compare.data.data_set import DataSet, whole_text
from oprag.compare.experiment import Experiment
from oprag.compare.experiment_methods import kind_of
from oprag.compare.grid import as_grids
from oprag.compare.metrics.registry import usual_metric
from oprag.compare.providers.identity import LOCAL
from oprag.compare.running.prepared import PreparedExperiment
from oprag.errors import OptionError
from oprag.index.splitting import Split, pieces_of
from oprag.index.tokenizers import tokenizer_named

__all__ = ["sweep_experiment"]

_BUDGETS = tuple(1_024 * number for number in (1, 2, 4, 8, 16, 24, 32, 48))  # 1k to 48k, as in the paper
_AXES = {"order": ["source", "rank", "random"], "seed": [1, 2, 3]}  # random order is the control
_COVERAGE = "evidence_coverage"

_CANDIDATE_FACTOR = 1.5
_SAMPLE = 200_000  # characters to split, which takes about a quarter of a second
# A slice has at least 10,000 characters, and at least 20 chunks with 8 characters per token or word: the last chunk of
# a slice is short, so slices need many chunks.
_MIN_SLICE, _MIN_CHUNKS, _CHARACTERS_PER_TOKEN = 10_000, 20, 8


def sweep_experiment(data: DataSet, *, grid: Mapping[str, Any] | None = None, **others: Any) -> Experiment:
    """Make an experiment that varies the token budget and the order of the context.

    What is not set has a default that fits the data:

    - token_budget: 1k to 48k (1k is 1,024) in eight steps, from the first one that a chunk fits to the first one that
      holds the documents of every question.
    - order: source, rank, and with three seeds random, as a control.
    - k: so large that the token budget limits the context, estimated from a sample of the documents.
    - method: stuff; without models context_only, which scores the contexts alone.
    - metrics: the usual metric for the questions, which decides, and `evidence_coverage`.

    Args:
        data: The data set with the questions.
        grid: Axes with values, as in an `Experiment`; they replace the defaults.
        **others: Further arguments of `Experiment`, such as `models`.

    Raises:
        ExperimentError: The experiment is invalid.
        OptionError: The data is not a data set, no method reads a context, or no question can be scored.
        MissingExtraError: The splitter or the packaged tokenizer is not installed.
    """
    given: Any = data
    if not isinstance(given, DataSet):
        raise OptionError(f"data must be a data set, such as from read_data(), got {describe(given)}", given)
    answered = bool(others.get("models"))
    axes: dict[str, Any] = {"method": "stuff" if answered else "context_only", "token_budget": _BUDGETS, **_AXES}
    grids = as_grids(grid or {})
    defaults: dict[str, Any] = {
        "name": "sweep",
        "data": {"questions": data},
        "metrics": list(dict.fromkeys([usual_metric(data.questions, answered=answered), _COVERAGE])),
    }
    # Until the lengths are known, any k that does not contradict other options.
    minima = [[1, *(value for value in one.get("min_chunks", ()) if isinstance(value, int))] for one in grids]
    first = [{"k": max(minimum), **axes, **one} for one, minimum in zip(grids, minima, strict=True)]
    experiment = Experiment(**{**defaults, **others}, grid=first)
    _check(experiment)
    counter = experiment.token_counter
    splits = {cell.split for cell in experiment.grid_cells.cells if kind_of(cell.method).reads == "context"}
    length = min(_typical_length(data, split, counter) for split in splits)
    budgets = [budget for budget in _BUDGETS if budget >= length]
    tokens = {name: count(whole_text(document), counter) for name, document in data.documents.items()}
    whole = max(1, *(sum(tokens[name] for name in question.documents) for question in data.questions))
    axes["token_budget"] = [now for before, now in zip([0, *budgets], budgets, strict=False) if before < whole]
    largest = max(value or whole for one in grids for value in {**axes, **one}["token_budget"])
    # The same k for all budgets, so that settings only differ in the budget.
    axes["k"] = max(1, round(_CANDIDATE_FACTOR * largest / length))
    return experiment.replace(grid=[{**axes, **one} for one in grids])


def _check(experiment: Experiment) -> None:
    """Reject an experiment in which no budget has an effect, and one without scores of the metric that decides."""
    methods = {cell.method for cell in experiment.grid_cells.cells}
    if not any(kind_of(method).reads == "context" for method in methods):
        named = ", ".join(sorted(methods))
        problem = f"method={named} cannot be swept, because it reads no context within a token budget"
        raise OptionError(f"{problem}; use oprag compare to compare it with other methods", methods)
    metric = experiment.metric_names[0]
    scorable = PreparedExperiment(experiment).scorable[metric]
    if not scorable.questions:
        raise OptionError(f"no answer would have a score of {metric}: {scorable.reason}", metric)


def _typical_length(data: DataSet, split: Split, count_tokens: TokenCounter) -> float:
    """The mean number of tokens of the shorter half of the chunks of a sample, since the best-ranked may be short.

    Chunks may be much shorter than the chunk size: a table of numbers by another token counter, or a paragraph.
    """
    pieces = pieces_of(dict(_sample(data.documents, split.size or 1)), tokenizer_named(LOCAL).tokenizer, split)
    lengths = sorted(count(window.text, count_tokens) for window, _ in pieces)
    shorter = lengths[: (len(lengths) + 1) // 2]
    return max(1.0, sum(shorter) / len(shorter)) if shorter else 1.0


def _sample(documents: Mapping[str, str | Sequence[str]], size: int) -> Iterator[tuple[str, str]]:
    """Random slices of the documents; the seed is fixed, so that a continued sweep has the same k."""
    length = max(_MIN_SLICE, _MIN_CHUNKS * _CHARACTERS_PER_TOKEN * size)
    texts = [whole_text(document) for document in documents.values()]
    places = [(number, start) for number, text in enumerate(texts) for start in range(0, len(text), length)]
    random.Random(0).shuffle(places)
    taken = 0
    for number, start in places:
        if taken >= _SAMPLE:
            break
        part = texts[number][start : start + length]
        taken += len(part)
        yield f"{number}:{start}", part
