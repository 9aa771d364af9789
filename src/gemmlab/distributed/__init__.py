"""The product of torch's DTensors: `gemmlab.distributed.gemm`, and its choice of an algorithm.

torch keeps its part: process groups, meshes and redistribution are its own. gemmlab multiplies, and moves panels of the
operands from rank to rank while it does. Importing this module makes `torch.ops.gemmlab.gemm` take DTensors as well.
"""

from __future__ import annotations

from gemmlab.distributed.algorithm import Candidate, Choice, explain_choice
from gemmlab.distributed.mesh_product import gemm
from gemmlab.distributed.sharding import register
from gemmlab.distributed.traffic import Traffic

__all__ = ["Candidate", "Choice", "Traffic", "explain_choice", "gemm"]

register()
