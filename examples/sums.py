"""Sums of float32 arrays: of all elements or along axes, and their rounding errors."""

import math

import numpy as np

import gemmlab

rng = np.random.default_rng(0)
x = rng.random(10_000_000, dtype=np.float32)
exact = math.fsum(x)

# If terms are added one by one, the sum soon fills the 24 bits of a float32, and every addition loses a part of its
# term. The fewer additions a term goes through, the smaller the error: NumPy halves the array recursively, gemmlab
# keeps many sums.
one_by_one = np.add.accumulate(x)[-1]
for how, total in {"one by one": one_by_one, "numpy": x.sum(), "gemmlab": gemmlab.sum(x)}.items():
    print(f"{how:>10}: {total:.1f}, off by {abs(float(total) - exact) / exact:.1e} of it")
assert abs(float(gemmlab.sum(x)) - exact) < 1e-6 * exact

# Sum along axes, as in NumPy, over any strides.
table = x[:6_000_000].reshape(200, 300, 100)
np.testing.assert_allclose(gemmlab.sum(table, axis=0), table.sum(axis=0), rtol=1e-5)
np.testing.assert_allclose(gemmlab.sum(table, axis=(0, -1)), table.sum(axis=(0, -1)), rtol=1e-5)
np.testing.assert_allclose(gemmlab.sum(table[::-2, :, ::3], axis=1), table[::-2, :, ::3].sum(axis=1), rtol=1e-5)

# Along an axis whose elements are not adjacent NumPy adds one by one; in gemmlab a term goes through few additions.
tall = rng.random((1_000_000, 4), dtype=np.float32)
exact_columns = tall.sum(axis=0, dtype=np.float64)
for how, columns in {"numpy": tall.sum(axis=0), "gemmlab": gemmlab.sum(tall, axis=0)}.items():
    print(f"{how:>10}: columns off by up to {np.max(np.abs(columns - exact_columns) / exact_columns):.1e}")

# The result has the same bits at any number of threads.
assert gemmlab.sum(x, threads=1) == gemmlab.sum(x, threads=2)
