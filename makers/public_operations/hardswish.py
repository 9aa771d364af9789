"""Hardswish: x times (x + 3) / 6, the latter limited to 0 to 1."""

import numpy as np
from activations import activation

operation = activation("hardswish", lambda x: x * np.clip((x + 3) / 6, 0.0, 1.0))
