"""1 / (1 + exp(-x))."""

import numpy as np
from activations import activation

operation = activation("sigmoid", lambda x: 1 / (1 + np.exp(-x)))
