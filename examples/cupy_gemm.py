"""Products of CuPy matrices on a GPU: the result is CuPy's, on its current stream; nothing is copied to the host."""

import cupy

import gemmlab

cupy.random.seed(0)
m, n, k = 2048, 1536, 1024
a = cupy.random.rand(m, k, dtype=cupy.float32)
b = cupy.random.rand(k, n, dtype=cupy.float32)

# Print which kernel will run, and why.
print(gemmlab.explain_choice(a, b))

# The call returns before the product is computed: work is queued in order on the current stream.
stream = cupy.cuda.Stream(non_blocking=True)
stream.wait_event(cupy.cuda.get_current_stream().record())  # a and b are made on another stream
with stream:
    c = gemmlab.gemm(a, b)
    c = gemmlab.gemm(a, b, alpha=0.5, beta=2.0, c=c, out=c)  # 0.5 * a @ b + 2 * c
    gram = gemmlab.gemm(a, a.T)  # a view is read in place
    total = gemmlab.sum(c)
stream.synchronize()
assert isinstance(c, cupy.ndarray)
assert isinstance(total, cupy.ndarray)

# Compare with float64: terms are between 0 and 1, so the relative error of a sum of k terms is a few times 2**-24.
exact = 2.5 * (a.astype(cupy.float64) @ b.astype(cupy.float64))
print(f"largest relative error {float(abs(c / exact - 1).max()):.1e}")
cupy.testing.assert_allclose(c, exact, rtol=1e-4)
cupy.testing.assert_allclose(gram, a.astype(cupy.float64) @ a.T.astype(cupy.float64), rtol=1e-4)
cupy.testing.assert_allclose(total, exact.sum(), rtol=1e-5)

# Tensor cores round inputs to ten bits behind the point. They are used only on request.
fast = gemmlab.gemm(a, b, precision="tf32")
print(f"with TF32: {float(abs(2.5 * fast / exact - 1).max()):.1e}")
cupy.testing.assert_allclose(fast, exact / 2.5, rtol=2e-3)

# Time calls in milliseconds by events; the calls above have loaded the code.
start, stop = cupy.cuda.Event(), cupy.cuda.Event()
for name, multiply in {"gemmlab": lambda: gemmlab.gemm(a, b, out=c), "cupy": lambda: cupy.matmul(a, b, out=c)}.items():
    multiply()
    start.record()
    for _ in range(20):
        multiply()
    stop.record()
    stop.synchronize()
    print(f"{name:>8}: {cupy.cuda.get_elapsed_time(start, stop) / 20:.3f} ms a call")
