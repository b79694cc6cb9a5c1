"""The same run on a Ray cluster: questions are spread over its workers, and one process writes the results file."""

from oprag.compare.on_ray.driver import run_on_ray

__all__ = ["run_on_ray"]
