"""What the tests of the CUDA compiler share."""

from __future__ import annotations

from pathlib import Path

SOURCE = """template <int T> __global__ void tile(float* x, int n) {
  __shared__ float s[T][T];
  s[threadIdx.y][threadIdx.x] = x[n];
  __syncthreads();
  x[n] = s[threadIdx.x][threadIdx.y];
}
"""


def headers(tmp_path: Path) -> Path:
    """A cache that the tests of one run share: unpacking takes a second."""
    return tmp_path.parent / "headers"
