"""Hardshrink: x if |x| is more than 0.5, else 0."""

import numpy as np
from activations import activation

operation = activation("hardshrink", lambda x: np.where(np.abs(x) > 0.5, x, 0.0))
