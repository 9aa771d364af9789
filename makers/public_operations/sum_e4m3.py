"""The sum of all numbers, in E4M3 (8 bits, four of them exponent, three of them fraction), added to y."""

from sum_into import bytes_with_one, eight_bit_values, sum_into

operation = sum_into("sum_e4m3", eight_bit_values(fraction_bits=3), fill=bytes_with_one(0x38), type="uint8")
