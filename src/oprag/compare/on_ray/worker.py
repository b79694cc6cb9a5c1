"""What a worker of the cluster does with a share of the questions."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, NamedTuple

from oprag.compare.on_ray.asking import AtDesk, AtDeskMeter, ask_desk
from oprag.compare.on_ray.claiming import ClaimingCaller
from oprag.compare.on_ray.desk import Begun
from oprag.compare.running.engine import Engine
from oprag.compare.running.run import batches
from oprag.compare.running.work_item import WorkItem
from oprag.compare.running.workshop import longest_replies, make_engine, make_library, make_recorder
from oprag.compare.spec.resolved import ResolvedExperiment
from oprag.errors import ExperimentError, OpragError

__all__ = ["Share", "work_on"]

_LISTEN = 1.0  # seconds between two questions whether all is to end

# Models and embedders are loaded once in a process, whatever the number of its shares.
_opened: dict[str, ResolvedExperiment] = {}


class Share(NamedTuple):
    """What one worker does at a time.

    Attributes:
        run: The name of the run; none other has it.
        number: The number of the share.
        places: The keys of its questions, each with those of the cells that wait for it.
        threads: How many calls of models it may make at the same time.
    """

    run: str
    number: int
    places: Mapping[str, Sequence[str]]
    threads: int


def work_on(experiments: Sequence[Any], share: Share, desk: Any) -> str | None:
    """Answer the questions of a share, as far as they are not answered.

    Args:
        experiments: A reference to the experiment, in a list: so it is fetched where it is needed alone.
        share: The share.
        desk: The handle of the desk.

    Returns:
        Why it ended early; None where it did not.

    Raises:
        ExperimentError: The experiment is another one here, since packages or models differ from machine to machine.
        ResultsFileError: Results cannot be written, or the desk is gone.
        MissingExtraError: Something that the experiment needs is not installed here.
    """
    begun: Begun = ask_desk(desk, "begin", share.number)
    opened = _opened_for(share.run, experiments)
    units = [unit for unit in _units(opened, share) if (unit.cell_key, unit.question_key) not in begun.done]
    cache = AtDesk(desk)
    experiment = opened.experiment
    library = make_library(opened, cache)
    caller = ClaimingCaller(
        begun.turn,
        desk,
        opened.models,
        experiment.prices,
        longest_replies(experiment),
        cache,
        threads=share.threads,
        count_tokens=experiment.token_counter,
    )
    meter = AtDeskMeter(desk, begun.turn)
    engine = make_engine(opened, library, caller, cache, meter, max_concurrency=share.threads)
    recorder = make_recorder(opened, library, cache)
    try:
        with _listening(desk, engine, opened.stop):
            for outcomes in batches(engine.run(units)):
                ask_desk(desk, "keep_answers", begun.turn, recorder.records(outcomes))
    finally:
        caller.close()
        library.close()
    return engine.stopped


def _opened_for(run: str, experiments: Sequence[Any]) -> ResolvedExperiment:
    if run not in _opened:
        import ray

        _opened.clear()
        _opened[run] = ResolvedExperiment(ray.get(experiments[0]))
    return _opened[run]


def _units(opened: ResolvedExperiment, share: Share) -> list[WorkItem]:
    """The units of a share.

    Raises:
        ExperimentError: Some of them are not there.
    """
    places = {question: frozenset(cells) for question, cells in share.places.items()}
    units = [unit for unit in opened.units(set(places)) if unit.cell_key in places[unit.question_key]]
    wanted = sum(map(len, places.values()))
    if len(units) != wanted:
        raise ExperimentError(
            f"the worker on {socket.gethostname()} sees another experiment, which has {len(units):,} of {wanted:,} "
            "questions in cells: something that answers depend on, such as the version of a package or a model's "
            "file, differs from that of the machine that began the run; make them equal",
            share.number,
        )
    return units


@contextmanager
def _listening(desk: Any, engine: Engine, stop: Event) -> Iterator[None]:
    """Hear of it when all is to end, though this worker makes no call now."""
    over = Event()

    def listen() -> None:
        while not over.wait(_LISTEN):
            try:
                reason: str | None = ask_desk(desk, "stopped")
            except OpragError:
                return  # what the worker asks next tells it
            if reason is not None:
                engine.stop(reason)
                stop.set()
                return

    thread = Thread(target=listen, name="oprag-listening", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
