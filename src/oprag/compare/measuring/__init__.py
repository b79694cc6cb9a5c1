"""Measuring: wall time, processor time and peak memory of a call, and calls in processes of their own."""

from oprag.compare.measuring.cores import usable_cores
from oprag.compare.measuring.fresh_process import check_installed, in_fresh_process
from oprag.compare.measuring.usage import Measured, measure, repeat

__all__ = ["Measured", "check_installed", "in_fresh_process", "measure", "repeat", "usable_cores"]
