"""Numbers of 8 bits: a sign, an exponent and a fraction, without infinities."""

import numpy as np


def decoded(fraction_bits):
    """Return the function that gives the values of bytes: subnormal numbers below an exponent of 1."""
    most = 127 >> fraction_bits  # the largest exponent
    low = most // 2 + fraction_bits  # bias of the exponent of the last bit

    def decode(bits):
        bits = bits.astype(int)
        exponent, fraction = bits >> fraction_bits & most, bits & (1 << fraction_bits) - 1
        normal = np.ldexp((1 << fraction_bits) + fraction.astype(float), exponent - low)
        size = np.where(exponent > 0, normal, np.ldexp(fraction, 1 - low))
        return np.where(bits & 128, -size, size)

    return decode


def fill(rng, shape):
    """Return numbers below 2, of either sign."""
    return rng.integers(0, 0x40, shape) + 128 * rng.integers(0, 2, shape)
