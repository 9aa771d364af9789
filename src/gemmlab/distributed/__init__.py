"""The product of torch's DTensors: `gemmlab.distributed.gemm`, and its choice of an algorithm.

torch provides process groups, meshes and redistribution. gemmlab multiplies, and sends panels of the operands from rank
to rank at the same time. After this module is imported, `torch.ops.gemmlab.gemm` takes DTensors as well.
"""

from __future__ import annotations

try:
    import torch  # noqa: F401 - without it the imports below fail with its bare name
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "gemmlab.distributed needs torch: pip install 'gemmlab[torch]', or '.[torch]' in a checkout", name=error.name
    ) from error

from gemmlab.distributed.algorithm import explain_choice
from gemmlab.distributed.candidate import Candidate, Choice
from gemmlab.distributed.mesh_product import gemm
from gemmlab.distributed.sharding import register
from gemmlab.distributed.traffic import Traffic

__all__ = ["Candidate", "Choice", "Traffic", "explain_choice", "gemm"]

register()
