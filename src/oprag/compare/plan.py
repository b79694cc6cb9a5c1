"""Estimate of the calls, tokens and money of an experiment, from a dry run with placeholder replies."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field

from oprag.compare.analysis.effects import power_of
from oprag.compare.analysis.matrix import matrix_of
from oprag.compare.analysis.wording import counted, money_text
from oprag.compare.controls import kind_of
from oprag.compare.db.cache import MemoryCache
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.records import Done, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.dry_run import dry_run
from oprag.compare.running.ledger import Tariff
from oprag.compare.running.report import RunState
from oprag.compare.running.resolved import ResolvedExperiment, Scorable
from oprag.compare.spec.experiment import Experiment
from oprag.compare.spec.money import Limits
from oprag.methods.model_calls import Usage

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True, kw_only=True)
class ModelPlan:
    """The planned calls of one model.

    Attributes:
        calls: Number of calls; identical calls count once.
        input_tokens: Tokens of the prompts, by the token counter of the experiment.
        output_tokens: Tokens of the replies: the model's output limit per reply, or 100 if none is set.
        money: Cost of the calls; None if the model has no price.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    money: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planned work and cost of an experiment.

    Replies are not known in advance, so calls that depend on replies are estimated with placeholders: `self_route`
    always makes its second call, and `step_down` and `reciprocal` get as many other questions as they request.

    Attributes:
        cells: Number of cells.
        combinations: Number of combinations of axis values in the grids.
        impossible: Number of combinations that cannot be run, by reason.
        repeated: Number of combinations that are equivalent to another one.
        questions: Number of questions in all data sets that are used.
        answers: Number of answers: one for each question of each cell.
        done: Number of answers that are already in the results file.
        failed: Number of answers that failed in earlier runs; `retry_failed` retries them.
        calls_unshared: Number of remaining calls if cells shared none.
        models: The planned calls, by model.
        failures: Number of answers that cannot be generated, by reason, such as a token budget that no chunk fits.
        stand_in: Embedders that cost money; the plan uses the packaged embedder instead, and shares none of their
            calls. If empty, the plan and the run have the same contexts.
        embedded_tokens: Tokens of the texts that each of these embedders still has to embed, by its tokenizer.
        embedding_money: Price of these tokens, for embedders with a price.
        limits: The spending limits.
        spent: Calls, tokens and money spent by earlier runs.
        longest_replies: Tokens that the limits reserve for a reply, by model: its output limit, or 1,024.
        notes: Number of stored answers with each note, such as an empty reply.
        scorable: Number of questions that each metric can score, and what the metric needs.
        unscored: Why a run would be refused because no answer could be scored; None if some answers can be scored.
        power: The smallest difference that all questions together can show, by data set; empty without answers
            yet to estimate it from.
    """

    cells: int
    combinations: int
    impossible: Mapping[str, int]
    repeated: int
    questions: int
    answers: int
    done: int
    failed: int
    calls_unshared: int
    models: Mapping[str, ModelPlan]
    failures: Mapping[str, int]
    stand_in: tuple[str, ...]
    embedded_tokens: Mapping[str, int]
    embedding_money: Mapping[str, float]
    limits: Limits
    spent: Spent
    longest_replies: Mapping[str, int]
    notes: Mapping[str, int] = field(default_factory=dict)
    scorable: Mapping[str, Scorable] = field(default_factory=dict)
    unscored: str | None = None
    power: tuple[str, ...] = ()

    @property
    def calls(self) -> int:
        """Number of calls that the run will make."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens(self) -> int:
        """Number of input and output tokens of all calls."""
        return sum(model.input_tokens + model.output_tokens for model in self.models.values())

    @property
    def money(self) -> float | None:
        """Cost of all calls, and of embedding where it is known; None if a model has no price."""
        costs = [*(model.money for model in self.models.values()), *self.embedding_money.values()]
        return None if None in costs or not costs else sum(cost for cost in costs if cost is not None)

    def describe(self) -> str:
        """The plan as plain text."""
        return "\n".join(_lines(self))


def make_plan(
    experiment: Experiment | ResolvedExperiment,
    path: str | os.PathLike[str] | None = None,
    *,
    retry_failed: bool = False,
    keep: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Estimate the calls, tokens and money of a run without calling a model or an embedder that costs money.

    Models given by name are not loaded, so neither API keys nor model files are needed. Unless `keep` is set, no
    file is written. Models of earlier runs are recognized by their specification: if it now refers to another model,
    such as a changed file, only `run` detects it.

    Args:
        experiment: The experiment; if it is already resolved, its models are known exactly.
        path: The results file that the run will continue; None for a new run.
        retry_failed: Whether the run will retry questions that failed before.
        keep: Whether to store the splits, vectors and retrievals of the plan in the results file for the run to reuse;
            the file is created if missing.
        on_progress: Called with the number of planned answers, and the number of all answers.

    Returns:
        The plan; `describe()` returns it as text.

    Raises:
        OptionError: `experiment` is not an `Experiment`.
        ExperimentError: The experiment cannot be run as described.
        ResultsFileError: The file is corrupt, is not a results file, or cannot be written.
        MissingExtraError: A package that the experiment needs is not installed.
    """
    with closing(ResultsFile(path)) if path is not None else nullcontext() as file:
        resolved = ResolvedExperiment.of(experiment, planned=True)
        experiment = resolved.experiment
        costly = tuple(name for name, embedder in resolved.embedders.items() if embedder.paid)
        found = Done(set(), {}) if file is None else file.done(experiment.name)
        state = RunState([*resolved.items()], found, retry_failed=retry_failed)
        # A stand-in embedder retrieves other chunks than the run, so its retrievals are not stored.
        cache = file if keep and file is not None and not costly else MemoryCache(file)
        planned, models, embedded = dry_run(resolved, cache, state.waiting, costly=costly, on_progress=on_progress)
        spent = Spent() if file is None else file.spent(experiment.name)
        notes: Mapping[str, int] = {}
        power: tuple[str, ...] = ()
        if file is not None and state.answered:
            with ResultsReader(file.path, experiment.name) as reader:
                notes = dict(reader.notes())
                if state.waiting:
                    questions = Counter(one.data for one in resolved.question_records)
                    power = tuple(power_of(matrix_of(reader), questions))
    return Plan(
        cells=len(resolved.cells.cells),
        combinations=resolved.cells.combinations,
        impossible=resolved.cells.impossible,
        repeated=resolved.cells.repeated,
        questions=len(resolved.question_records),
        answers=state.total,
        done=state.answered,
        failed=state.failed_before,
        calls_unshared=sum(one.calls for one in planned),
        models={
            name: ModelPlan(
                calls=calls,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                money=experiment.prices[name].of(usage) if name in experiment.prices else None,
            )
            for name, (calls, usage) in models.items()
        },
        failures=dict(Counter(one.failure for one in planned if one.failure is not None)),
        stand_in=costly,
        embedded_tokens=embedded,
        embedding_money={
            name: experiment.prices[name].of(Usage(tokens))
            for name, tokens in embedded.items()
            if name in experiment.prices
        },
        limits=experiment.limits,
        spent=spent,
        longest_replies={name: Tariff.of(experiment, name).reserved for name in models},
        notes=notes,
        scorable=resolved.scorable,
        unscored=resolved.unscored,
        power=power,
    )


def _lines(plan: Plan) -> Iterator[str]:
    same = f"; {plan.repeated:,} are equivalent to another one" if plan.repeated else ""
    yield f"{counted(plan.cells, 'cell')} ({counted(plan.combinations, 'combination')}{same})"
    for reason, number in plan.impossible.items():
        yield f"  {counted(number, 'combination')} skipped: {reason}"
    yield from _answers(plan)
    yield f"{counted(plan.calls, 'model call')} ({plan.calls_unshared:,} without sharing)"
    for name, model in plan.models.items():
        money = "" if model.money is None else f", {money_text(model.money)}"
        known = not kind_of(name).own
        tokens = f"{model.input_tokens:,} tokens in, {model.output_tokens:,} out" if known else "tokens unknown"
        yield f"  {name}: {counted(model.calls, 'call')}, {tokens}{money}"
    for name in plan.stand_in:
        to_embed = plan.embedded_tokens[name]
        money = f", {money_text(plan.embedding_money[name])}" if name in plan.embedding_money else ""
        yield f"  {name}: {to_embed:,} tokens to embed{money}; planned with the packaged embedder instead"
    limits = plan.limits.model_dump(exclude_none=True)
    if limits:
        spent = vars(plan.spent)
        yield "limits: " + ", ".join(f"{limit:,} {name} ({spent[name]:,.6g} spent)" for name, limit in limits.items())
        if plan.longest_replies and limits.keys() != {"calls"}:
            longest = ", ".join(f"{tokens:,} for {name}" for name, tokens in plan.longest_replies.items())
            yield f"  until a reply is there, the limits reserve the longest one in tokens: {longest}"
    yield from _scores(plan)
    yield from plan.power


def _answers(plan: Plan) -> Iterator[str]:
    yield f"{counted(plan.questions, 'question')}, {counted(plan.answers, 'answer')}"
    if plan.done:
        yield f"  {plan.done:,} are already in the results file"
    for note, number in plan.notes.items():
        yield f"    {number:,} of them: {note}"
    if plan.failed:
        yield f"  {plan.failed:,} failed before"
    for reason, number in plan.failures.items():
        yield f"  {number:,} cannot be generated: {reason}"


def _scores(plan: Plan) -> Iterator[str]:
    """The number of questions that each metric can score; metrics with the same number share a line."""
    by_questions: dict[Scorable, list[str]] = {}
    for metric, (questions, why) in plan.scorable.items():
        by_questions.setdefault(Scorable(questions, why if questions < plan.questions else ""), []).append(metric)
    for (questions, why), metrics in by_questions.items():
        if questions:
            others = f" ({why})" if why else ""
            yield f"{', '.join(metrics)}: {questions:,} of {counted(plan.questions, 'question')} can be scored{others}"
        else:
            yield f"not scored ({why}): {', '.join(metrics)}"
    if plan.unscored is not None:
        yield f"a run would be refused: {plan.unscored}"
