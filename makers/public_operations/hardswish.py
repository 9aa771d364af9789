"""x times (x + 3) / 6, which is held between 0 and 1."""

import numpy as np
from activations import activation

operation = activation("hardswish", lambda x: x * np.clip((x + 3) / 6, 0.0, 1.0))
