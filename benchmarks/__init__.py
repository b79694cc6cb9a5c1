"""Timings compared with the peers.

`python -m benchmarks` writes docs/benchmarks/assembly.md, `python -m benchmarks.NAME` runs one.

One BLAS thread: with more, small products jump from 0.1 ms to 8 ms on a machine with few cores. NumPy reads this when
it is imported, so it has to be said before. The same goes for the local model's threads: if they spin while they wait
for each other, any other program on the machine makes them many times as slow.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
