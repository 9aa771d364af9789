"""The sum of all numbers of 8 bits, four of them the exponent and three behind the point, added to y."""

import numpy as np
from sum_into import sum_into


def decode(bits):
    """Return the values of bytes: subnormal numbers below an exponent of 1."""
    bits = bits.astype(int)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent > 0, np.ldexp(8.0 + fraction, exponent - 10), np.ldexp(fraction, -9))
    return np.where(bits & 128, -size, size)


def fill(rng, shape):
    """Return numbers below 2, of either sign."""
    return rng.integers(0, 0x40, shape) + 128 * rng.integers(0, 2, shape)


operation = sum_into("sum_e4m3", decode, fill=fill, type="uint8")
