"""x / (1 + exp(-x))."""

import numpy as np
from activations import activation

operation = activation("swish", lambda x: x / (1 + np.exp(-x)))
