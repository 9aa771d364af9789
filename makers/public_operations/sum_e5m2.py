"""The sum of all numbers of 8 bits, five of them the exponent and two behind the point, added to y."""

import numpy as np
from sum_into import sum_into


def decode(bits):
    """Return the values of bytes: subnormal numbers below an exponent of 1."""
    bits = bits.astype(int)
    exponent, fraction = bits >> 2 & 31, bits & 3
    size = np.where(exponent > 0, np.ldexp(4.0 + fraction, exponent - 17), np.ldexp(fraction, -16))
    return np.where(bits & 128, -size, size)


def fill(rng, shape):
    """Return numbers below 2, of either sign."""
    return rng.integers(0, 0x40, shape) + 128 * rng.integers(0, 2, shape)


operation = sum_into("sum_e5m2", decode, fill=fill, type="uint8")
