"""Benchmarks against LangChain and LlamaIndex.

`python -m benchmarks` runs most of them and writes their pages in docs/benchmarks; `python -m benchmarks.NAME` runs
one.

One BLAS thread: with more, small products jump from 0.1 ms to 8 ms on a machine with few cores. NumPy reads the
variable when it is imported, so it is set here. The threads of the local model wait passively: if they spin, any other
program on the machine slows them down many times.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
