import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from oprag.pipeline.thresholds import find_repeats


def unit(rows: Any) -> NDArray[np.float32]:
    matrix: NDArray[np.float32] = np.array(rows, dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def one_by_one(vectors: NDArray[np.float32], threshold: float) -> list[tuple[int, float]]:
    """The rule as it is written down: walk best first, compare with each row that stays."""
    staying: list[int] = []
    result: list[tuple[int, float]] = []
    for row in range(len(vectors)):
        cosines = {other: float(vectors[row] @ vectors[other]) for other in staying}
        nearest = max(cosines, key=lambda other: cosines[other], default=None)
        if nearest is not None and cosines[nearest] >= threshold:
            result.append((nearest, cosines[nearest]))
        else:
            staying.append(row)
            result.append((-1, 0.0))
    return result


@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(0, 700),
    groups=st.integers(1, 60),
    threshold=st.floats(-0.9, 0.99),
)
def test_blocks_give_what_one_by_one_does(seed, rows, groups, threshold):
    generator = np.random.default_rng(seed)
    centers = generator.standard_normal((groups, 6))
    vectors = unit(centers[generator.integers(groups, size=rows)] + 0.2 * generator.standard_normal((rows, 6)))
    twins, cosines = find_repeats(vectors, threshold)
    expected = one_by_one(vectors, threshold)
    near = [row for row, (_, cosine) in enumerate(expected) if abs(cosine - threshold) < 1e-5]
    if near:
        # A product of matrices rounds in another way than a product of vectors.
        return
    assert twins.tolist() == [twin for twin, _ in expected]
    assert cosines.tolist() == pytest.approx([cosine for _, cosine in expected], abs=1e-5)


def test_memory_does_not_grow_with_the_square():
    rows = 6_000
    vectors = unit(np.random.default_rng(0).standard_normal((rows, 32)))
    tracemalloc.start()
    try:
        find_repeats(vectors, 0.9)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < rows * rows * 4 / 10
