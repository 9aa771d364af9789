"""The sum of all numbers, added to y."""

import numpy as np

from gemmlab import Array, Operation


def sum_into(name, decode, **stated):
    """State the sum of `decode(a)` over all elements of a, added to y; `stated` are further facts of the array a."""

    def error(a, u):
        values = decode(a)
        # Sums of up to 256 whole numbers of one unit are exact in any order, in halves and in bfloat16.
        exact = np.isin(values, (-1, 0, 1)).all()
        return np.zeros(1) if exact else np.abs(values).sum().reshape(1) * u * 64

    return Operation(
        name=name,
        extents=("s", "k"),
        arrays=(
            Array("a", ("s", "k"), **stated),
            Array("y", (1,), role="inout", fill=lambda _, shape: np.zeros(shape)),
        ),
        reference=lambda a: decode(a).sum().reshape(1),
        bound=error,
        shapes=((2, 256), (1, 256), (16, 512), (5, 1024)),
        flops=lambda s, k: s * k,
        count="64x256",
    )


def eight_bit_values(fraction_bits):
    """Return a function that decodes bytes: a sign, an exponent, `fraction_bits` bits of fraction. Numbers with an
    exponent of 0 are subnormal, and no bits stand for infinity or NaN.
    """
    most = 127 >> fraction_bits  # the largest exponent
    low = most // 2 + fraction_bits  # bias of the exponent of the last bit

    def decode(bits):
        bits = bits.astype(int)
        exponent, fraction = bits >> fraction_bits & most, bits & (1 << fraction_bits) - 1
        normal = np.ldexp((1 << fraction_bits) + fraction.astype(float), exponent - low)
        size = np.where(exponent > 0, normal, np.ldexp(fraction, 1 - low))
        return np.where(bits & 128, -size, size)

    return decode


def bytes_with_one(one):
    """Return a function that returns random bytes for numbers below 2 in magnitude, of either sign, or for an odd
    number of rows bytes for -1, 0 and 1, as in `whole_or_random`; `one` stands for 1.
    """

    def fill(rng, shape):
        if shape[0] % 2:
            return rng.choice((0, one, one | 128), shape)
        return rng.integers(0, 0x40, shape) + 128 * rng.integers(0, 2, shape)

    return fill


def whole_or_random(rng, shape):
    """Return random numbers below 1 in magnitude, or for an odd number of rows random numbers of -1, 0 and 1: the bound
    of sums in halves is wide, and these sums are exact.
    """
    return rng.integers(-1, 2, shape).astype(float) if shape[0] % 2 else rng.uniform(-1, 1, shape)


operation = sum_into("sum_into", lambda a: a, fill=whole_or_random)
