"""What an experiment will take, found out by running it with a model that writes placeholders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from oprag.compare.answer_tables import Spent
from oprag.compare.checking import Found
from oprag.compare.dry_run import Asked, DryRun
from oprag.compare.experiment import Experiment
from oprag.compare.money import Limits, Price
from oprag.compare.opened import Opened
from oprag.compare.results_file import ResultsFile
from oprag.compare.work import Unit

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """What one model will be asked.

    Attributes:
        calls: The calls that will be made, each distinct one once.
        input_tokens: The tokens of their prompts, by the counter of the experiment.
        output_tokens: The tokens of the replies, at the longest that the model was told, or 100 each.
        money: What that costs; None without a price.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an experiment will take.

    Replies are not known beforehand, so calls that depend on replies are counted with placeholders: `self_route` with a
    second call always, `step_down` and `reciprocal` with as many other questions as they ask for.

    Attributes:
        cells: How many cells it has.
        combinations: How many combinations of values the grids have.
        impossible: How many of them cannot be run, by reason.
        repeated: How many do the same as another one.
        questions: How many questions there are, in all data sets that are used.
        units: How many questions in cells there are.
        done: How many of them have an answer in the results file already.
        failed: How many failed before, and are tried again when that is asked for.
        calls_unshared: The calls of what is left to do, if every cell were run by itself.
        models: What will be asked, by model.
        failures: How many questions in cells cannot be answered, by reason: nothing fits a budget, say.
        stand_in: The embedders that cost money, in whose place the packaged one was asked; empty where the plan knows
            the contexts themselves.
        limits: The most that may be spent.
        spent: What earlier runs have spent.
    """

    cells: int
    combinations: int
    impossible: Mapping[str, int]
    repeated: int
    questions: int
    units: int
    done: int
    failed: int
    calls_unshared: int
    models: Mapping[str, ModelPlan]
    failures: Mapping[str, int]
    stand_in: tuple[str, ...]
    limits: Limits
    spent: Spent

    @property
    def calls(self) -> int:
        """The calls that will be made."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens(self) -> int:
        """The tokens that models will read and write."""
        return sum(model.input_tokens + model.output_tokens for model in self.models.values())

    @property
    def money(self) -> float | None:
        """What that costs; None where a model has no price."""
        costs = [model.money for model in self.models.values()]
        return None if None in costs or not costs else sum(cost for cost in costs if cost is not None)

    def describe(self) -> str:
        """The plan in plain text."""
        return "\n".join(_lines(self))


def make_plan(
    experiment: Experiment,
    path: str | os.PathLike[str] | None = None,
    *,
    retry_failed: bool = False,
    watch: Callable[[int, int], None] | None = None,
) -> Plan:
    """Find out what a run will take, without asking a model or an embedder that costs money.

    What is split, embedded and found for the plan is kept in the results file, if there is one, and not done again.

    Args:
        experiment: The experiment.
        path: The results file that the run will go on with; None for one that begins anew.
        retry_failed: Whether questions that failed before will be tried again.
        watch: Told how many questions in cells are planned, and how many there are.

    Raises:
        OptionError: It is no experiment.
        ExperimentError: The experiment cannot be run as it is described.
        ResultsFileError: The file is damaged, is another one, or cannot be written.
        MissingExtraError: Something that it needs is not installed.
    """
    opened = Opened(experiment)
    file = None if path is None else ResultsFile(path)
    found = Found(set(), {}, 0) if file is None else file.found(experiment.name)
    spent = Spent() if file is None else file.spent(experiment.name)
    units = done = failed = 0
    left: list[Unit] = []
    for unit in opened.units():
        units += 1
        place = unit.cell_key, unit.question_key
        done += place in found.answered
        failed += place in found.failed
        if place not in found.answered and (retry_failed or place not in found.failed):
            left.append(unit)
    costly = tuple(name for name, embedder in opened.embedders.items() if embedder.spends)
    dry = DryRun(opened, file, costly)
    calls_unshared, failures = dry.run(left, watch)
    if file is not None:
        file.close()
    return Plan(
        cells=len(opened.cells.cells),
        combinations=opened.cells.combinations,
        impossible=opened.cells.impossible,
        repeated=opened.cells.repeated,
        questions=len(opened.question_rows),
        units=units,
        done=done,
        failed=failed,
        calls_unshared=calls_unshared,
        models={name: _model_plan(asked, experiment.prices.get(name)) for name, asked in dry.asked.items()},
        failures=failures,
        stand_in=costly,
        limits=experiment.limits,
        spent=spent,
    )


def _model_plan(asked: Asked, price: Price | None) -> ModelPlan:
    usage = asked.usage
    money = None if price is None else price.of(usage)
    return ModelPlan(calls=asked.calls, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, money=money)


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.combinations:,} combinations: {plan.cells:,} cells"
    if plan.repeated:
        yield f"  {plan.repeated:,} do the same as another one: an option has no effect in them"
    for reason, number in plan.impossible.items():
        yield f"  {number:,} skipped: {reason}"
    yield f"{plan.questions:,} questions: {plan.units:,} answers"
    if plan.done:
        yield f"  {plan.done:,} are in the results file"
    if plan.failed:
        yield f"  {plan.failed:,} failed before"
    for reason, number in plan.failures.items():
        yield f"  {number:,} cannot be made: {reason}"
    yield f"{plan.calls:,} calls of models, of {plan.calls_unshared:,} that the cells need"
    for name, model in plan.models.items():
        money = "" if model.money is None else f", {model.money:,.2f}"
        yield f"  {name}: {model.calls:,} calls, {model.input_tokens:,} tokens in, {model.output_tokens:,} out{money}"
    for name in plan.stand_in:
        yield f"  planned with the packaged embedder in place of {name}, which costs money"
    limits = {name: limit for name, limit in vars(plan.limits).items() if limit is not None}
    if limits:
        spent = plan.spent._asdict()
        yield "limits: " + ", ".join(f"{limit:,} {name} ({spent[name]:,.6g} spent)" for name, limit in limits.items())
