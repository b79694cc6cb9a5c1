"""Run an experiment: dry run, engine, model calls, storage and report of a run."""

__all__: list[str] = []
