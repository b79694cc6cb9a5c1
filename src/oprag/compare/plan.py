"""The calls, tokens and money that an experiment will take, from a dry run with placeholders as replies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field

from oprag.compare.analysis.matrix import matrix_of
from oprag.compare.analysis.power import power_of
from oprag.compare.analysis.wording import counted, money_text
from oprag.compare.db.cache import MemoryCache
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import Done, MeasuredSoFar, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.endpoints import lacks_key, shown_address
from oprag.compare.providers.model import ModelSpec
from oprag.compare.running.dry_run import PlannedCalls, PlannedItem, dry_run, together
from oprag.compare.running.report import RunState
from oprag.compare.running.resolved import ResolvedExperiment, Scorable
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """The planned calls of one model.

    Attributes:
        calls: Number of calls; identical ones count once.
        input_tokens: Tokens of their prompts, by the counter of the experiment.
        output_tokens: Tokens of the replies: the limit that the model was given, or 100 each.
        money: Their cost; None without a price.
        address: Where the prompts are sent; None for the provider's own host.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None
    address: str | None = None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What an experiment will take.

    Replies are not known beforehand, so calls that depend on replies are counted with placeholders: `self_route` always
    makes its second call, `step_down` and `reciprocal` get all the other questions that they ask for.

    Attributes:
        cells: Number of cells.
        combinations: Number of combinations of values in the grids.
        impossible: Number of combinations that cannot be run, by reason.
        repeated: Number of combinations that do the same as another one.
        questions: Number of questions, in all data sets that are used.
        units: Number of questions in cells.
        done: Number of questions in cells that have an answer in the results file.
        failed: Number of questions in cells that failed before; `retry_failed` retries them.
        calls_unshared: Number of remaining calls if no call were shared between cells.
        models: The planned calls, by model.
        failures: Number of questions in cells that cannot be answered, by reason, such as a budget that nothing fits.
        stand_in: Embedders that cost money, replaced by the packaged one for the plan; if empty, the contexts of the
            plan are those of the run.
        addresses: Where texts are embedded, by embedder, if not at the provider's own host.
        limits: The limits of spending.
        spent: Calls, tokens and money that earlier runs have spent.
        notes: Number of stored answers with each note, such as that the reply was empty.
        scorable: Number of questions that each metric can score, and what it needs.
        unscored: Why a run is refused, since no answer could be scored; None if some can.
        measured: Warm-up answers per cell and repeats per answer; None if nothing is measured. Measured calls are not
            shared.
        power: How small a difference all questions together can show, by data set; empty without answers to tell from.
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
    notes: Mapping[str, int] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    scorable: Mapping[str, Scorable] = field(default_factory=dict)
    unscored: str | None = None
    measured: tuple[int, int] | None = None
    power: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """Number of calls that will be made."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens(self) -> int:
        """Tokens that models will read and write."""
        return sum(model.input_tokens + model.output_tokens for model in self.models.values())

    @property
    def money(self) -> float | None:
        """Their cost; None if a model has no price."""
        costs = [model.money for model in self.models.values()]
        return None if None in costs or not costs else sum(cost for cost in costs if cost is not None)

    def describe(self) -> str:
        """The plan in plain text."""
        return "\n".join(_lines(self))


def make_plan(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str] | None = None,
    *,
    retry_failed: bool = False,
    keep: bool = False,
    measure: bool = False,
    warmup: int = 1,
    repeats: int = 3,
    watch: Callable[[int, int], None] | None = None,
) -> Plan:
    """Plan a run: its calls, tokens and money, without asking a model or an embedder that costs money.

    Models given by name are not opened, so neither a provider's key nor a model file is needed, and no file is written.
    Models of earlier runs are recognized by their specification: if the same specification now opens another model,
    such as a changed file, only `run` notices.

    Args:
        experiment: The experiment; if it is resolved already, its models are known for certain.
        path: The results file that the run will continue; None for a new one.
        retry_failed: Whether the run will retry questions that failed before.
        keep: Whether to store the splits, vectors and retrievals of the plan in the results file, created if missing,
            for the run to use.
        measure: Whether to plan `measure_cells`, in which no call is shared and each is repeated.
        warmup: As in `measure_cells`.
        repeats: As in `measure_cells`.
        watch: Called with the number of questions in cells that are planned, and of all.

    Returns:
        The plan; `describe()` has it as text.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: A package that the experiment needs is not installed.
    """
    with closing(ResultsFile(path)) if path is not None else nullcontext() as file:
        resolved = ResolvedExperiment.of(experiment, identities={} if file is None else file.identities())
        experiment = resolved.experiment
        costly = tuple(name for name, embedder in resolved.embedders.items() if embedder.spends)
        found, measured = Done(set(), {}, 0), MeasuredSoFar(set(), set(), {})
        if file is not None and measure:
            measured = file.measured()
            found = measured.done(repeats)
        elif file is not None:
            found = file.done(experiment.name)
        state = RunState([*resolved.items()], found, retry_failed=retry_failed)
        # The retrievals of a stand-in are not those of the run.
        cache = file if keep and file is not None and not costly else MemoryCache(file)
        planned, asked, judged = dry_run(resolved, cache, state.waiting, costly=costly, again=measure, watch=watch)
        if measure:
            # Judges are asked once about each answer, which is made from the stored replies, as in a run.
            done = Done(set(), {}, 0) if file is None else file.done(experiment.name)
            answers = RunState([*resolved.items()], done, retry_failed=True).waiting if resolved.judges else []
            judged = dry_run(resolved, MemoryCache(file), answers, costly=costly).judged
            asked = _measured_calls(planned, measured, warmup, repeats)
        asked = together(asked, judged)
        spent = Spent() if file is None else file.spent(experiment.name)
        notes: Mapping[str, int] = {}
        power: tuple[str, ...] = ()
        if file is not None and state.answered and not measure:
            with ResultsReader(file.path, experiment.name) as reader:
                notes = dict(reader.notes())
                if state.waiting:
                    questions = Counter(one.data for one in resolved.question_records)
                    power = tuple(power_of(matrix_of(reader), questions))
    alone = [part for one in planned for part in (one.asked, one.judged)]
    return Plan(
        cells=len(resolved.cells.cells),
        combinations=resolved.cells.combinations,
        impossible=resolved.cells.impossible,
        repeated=resolved.cells.repeated,
        questions=len(resolved.question_records),
        units=state.total,
        done=state.answered,
        failed=state.failed_before,
        calls_unshared=sum(one.calls for one in (asked.values() if measure else alone)),
        models={
            name: ModelPlan(
                calls=calls,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                money=experiment.prices[name].of(usage) if name in experiment.prices else None,
                address=_address(experiment.models[name]),
            )
            for name, (calls, usage) in asked.items()
        },
        addresses={
            name: address
            for name in resolved.embedders
            if (address := _address(experiment.embedders[name])) is not None
        },
        failures=dict(Counter(one.failure for one in planned if one.failure is not None)),
        stand_in=costly,
        limits=experiment.limits,
        spent=spent,
        notes=notes,
        scorable=resolved.scorable,
        unscored=resolved.unscored,
        measured=(warmup, repeats) if measure else None,
        power=power,
    )


def _measured_calls(
    planned: Sequence[PlannedItem], measured: MeasuredSoFar, warmup: int, repeats: int
) -> dict[str, PlannedCalls]:
    """The calls, by model, if each missing attempt makes its own."""
    warm: set[str] = set()
    found: dict[str, PlannedCalls] = {}
    for item, asked, _, failure in planned:
        number = len(measured.missing(item.place, repeats))
        if failure is not None:
            number = 1  # which ends it, and warms nothing up
        elif item.cell_key not in warm:
            number += warmup  # of the first answer of a cell, before anything is measured
            warm.add(item.cell_key)
        if asked.calls:
            name = item.cell.model or ""
            found[name] = found.get(name, PlannedCalls()).plus(asked.times(number))
    return found


def _address(spec: ModelSpec | EmbedderSpec) -> str | None:
    """The addresses that texts are sent to, with commas; None for the provider's own host."""
    note = " (without a key, since there is no api_key_env)"
    shown = ", ".join(map(shown_address, spec.addresses))
    return f"{shown}{note if lacks_key(spec.use, spec.settings, spec.api_key_env) else ''}" or None


def _lines(plan: Plan) -> Iterator[str]:
    same = f"; {plan.repeated:,} are equivalent to another one" if plan.repeated else ""
    yield f"{counted(plan.cells, 'cell')} ({counted(plan.combinations, 'combination')}{same})"
    for reason, number in plan.impossible.items():
        yield f"  {counted(number, 'combination')} skipped: {reason}"
    yield from _answers(plan)
    if plan.measured is None:
        yield f"{counted(plan.calls, 'model call')} ({plan.calls_unshared:,} without sharing)"
    else:
        warmup, repeats = plan.measured
        yield (
            f"{counted(plan.calls, 'model call')}: each answer is measured {repeats:,} times, after {warmup:,} to warm "
            "up in each cell; nothing is shared"
        )
    for name, model in plan.models.items():
        money = "" if model.money is None else f", {money_text(model.money)}"
        to = "" if model.address is None else f", to {model.address}"
        tokens = f"{model.input_tokens:,} tokens in, {model.output_tokens:,} out"
        yield f"  {name}: {counted(model.calls, 'call')}, {tokens}{money}{to}"
    for name, address in plan.addresses.items():
        yield f"  {name}: embeds at {address}"
    for name in plan.stand_in:
        yield f"  planned with the packaged embedder in place of {name}, which costs money"
    limits = plan.limits.model_dump(exclude_none=True)
    if limits:
        spent = vars(plan.spent)
        yield "limits: " + ", ".join(f"{limit:,} {name} ({spent[name]:,.6g} spent)" for name, limit in limits.items())
    yield from _scores(plan)
    yield from plan.power


def _answers(plan: Plan) -> Iterator[str]:
    yield f"{counted(plan.questions, 'question')}, {counted(plan.units, 'answer')}"
    if plan.done:
        yield f"  {plan.done:,} are {'in the results file' if plan.measured is None else 'measured already'}"
    for note, number in plan.notes.items():
        yield f"    {number:,} of them: {note}"
    if plan.failed:
        yield f"  {plan.failed:,} failed before"
    for reason, number in plan.failures.items():
        yield f"  {number:,} cannot be made: {reason}"


def _scores(plan: Plan) -> Iterator[str]:
    """How many questions each metric can score; metrics with the same number share a line."""
    alike: dict[Scorable, list[str]] = {}
    for metric, (questions, why) in plan.scorable.items():
        alike.setdefault(Scorable(questions, why if questions < plan.questions else ""), []).append(metric)
    for (questions, why), metrics in alike.items():
        if questions:
            others = f" ({why})" if why else ""
            yield f"{', '.join(metrics)}: {questions:,} of {counted(plan.questions, 'question')} can be scored{others}"
        else:
            yield f"not scored ({why}): {', '.join(metrics)}"
    if plan.unscored is not None:
        yield f"a run is refused: {plan.unscored}"
