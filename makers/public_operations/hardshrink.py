"""x, and 0 where it is at most 0.5."""

import numpy as np
from activations import activation

operation = activation("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0.0))
