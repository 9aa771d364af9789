"""`gemmlab.launch`: run any CUDA kernel on a GPU or on the emulator, arrays in and arrays out."""

from __future__ import annotations

from gemmlab.launching.launched import Launched
from gemmlab.launching.run import launch
from gemmlab.launching.tensor_argument import TensorMap

__all__ = ["Launched", "TensorMap", "launch"]
