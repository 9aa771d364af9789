"""GELU by its tanh formula: 0.5 x (1 + tanh(0.798 (x + 0.0447 x^3)))."""

import numpy as np
from activations import activation

operation = activation("gelu", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
