"""Timings beside the peers: `python -m benchmarks` writes docs/benchmarks.md, `python -m benchmarks.NAME` runs one.

One BLAS thread: with more, small products jump from 0.1 ms to 8 ms on a machine with few cores. NumPy reads this when
it is imported, so it has to be said before.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
