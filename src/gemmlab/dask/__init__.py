"""The product of Dask arrays: `gemmlab.dask.gemm`, and `enabled`, under which `@` of float32 arrays is that product.

The scheduler, workers, spilling and progress bars are Dask's own. gemmlab adds tasks to the graph, each of which
multiplies two blocks.
"""

from __future__ import annotations

try:
    import dask.array  # noqa: F401 - without it the imports below fail with its bare name
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "gemmlab.dask needs dask: pip install 'gemmlab[dask]', or '.[dask]' in a checkout", name=error.name
    ) from error

from gemmlab.dask.matmul import enabled
from gemmlab.dask.task_graph import gemm

__all__ = ["enabled", "gemm"]
