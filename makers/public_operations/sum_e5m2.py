"""The sum of all numbers of 8 bits, five of them the exponent and two behind the point, added to y."""

from eight_bit_floats import decoded, fill
from sum_into import sum_into

operation = sum_into("sum_e5m2", decoded(fraction_bits=2), fill=fill, type="uint8")
