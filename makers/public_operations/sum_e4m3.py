"""The sum of all numbers of 8 bits, four of them the exponent and three behind the point, added to y."""

from eight_bit_floats import decoded, fill
from sum_into import sum_into

operation = sum_into("sum_e4m3", decoded(fraction_bits=3), fill=fill, type="uint8")
