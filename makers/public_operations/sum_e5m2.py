"""The sum of all numbers, in E5M2 (8 bits, five of them exponent, two of them fraction), added to y."""

from sum_into import bytes_with_one, eight_bit_values, sum_into

operation = sum_into("sum_e5m2", eight_bit_values(fraction_bits=2), fill=bytes_with_one(0x3C), type="uint8")
