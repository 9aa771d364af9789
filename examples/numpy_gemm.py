"""Products of NumPy matrices: scaled, added to a matrix, transposed, in place, batched, and their errors."""

import numpy as np

import gemmlab

rng = np.random.default_rng(0)
m, n, k = 400, 300, 500
a = rng.standard_normal((m, k), dtype=np.float32)
b = rng.standard_normal((k, n), dtype=np.float32)
c = rng.standard_normal((m, n), dtype=np.float32)

# Compute alpha * a @ b + beta * c in one call, and compare it with float64. The error of a sum of k products in float32
# is at most about k * 2**-24 of the sum of their magnitudes, in any order of addition; usually it is far smaller.
found = gemmlab.gemm(a, b, alpha=0.5, beta=2.0, c=c)
wide_a, wide_b, wide_c = (x.astype(np.float64) for x in (a, b, c))
error = np.abs(found - (0.5 * wide_a @ wide_b + 2.0 * wide_c))
bound = (k + 2) * 2.0**-24 * (0.5 * np.abs(wide_a) @ np.abs(wide_b) + 2.0 * np.abs(wide_c))
assert (error <= bound).all()
print(f"largest error {error.max():.1e}; the bound there is {bound.flat[error.argmax()]:.1e}")

# Transpose by a flag or as a view. Both are read in place, and so is a slice with steps.
b_t = np.ascontiguousarray(b.T)
by_flag = gemmlab.gemm(a, b_t, trans_b=True)
assert np.array_equal(by_flag, gemmlab.gemm(a, b_t.T))
np.testing.assert_allclose(gemmlab.gemm(a[::2, ::-1], b[::-1]), (a @ b)[::2], atol=1e-3)

# Write into existing memory: `out` receives the result and is returned. If it is also `c`, products add up in it.
total = np.zeros((m, n), np.float32)
for part in range(0, k, 100):
    gemmlab.gemm(a[:, part : part + 100], b[part : part + 100], beta=1.0, c=total, out=total)
np.testing.assert_allclose(total, a @ b, atol=1e-3)

# Leading axes broadcast, as in numpy.matmul: eight matrices by one.
many = rng.standard_normal((8, 20, k), dtype=np.float32)
assert gemmlab.gemm(many, b).shape == (8, 20, n)

# Threads: by default one for each physical core. Their number changes the time, but no bit of the result.
assert np.array_equal(gemmlab.gemm(a, b, threads=1), gemmlab.gemm(a, b, threads=2))

# Only float32 is accepted; nothing is converted silently.
try:
    gemmlab.gemm(wide_a, b)
except TypeError as refusal:
    print(refusal)
