"""ELU: x if x is positive, else exp(x) - 1."""

import numpy as np
from activations import activation

operation = activation("elu", lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))))
