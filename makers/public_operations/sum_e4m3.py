"""The sum of all numbers, in E4M3 (8 bits, four of them exponent, three of them fraction), added to y."""

from sum_into import eight_bit_values, fill_below_two, sum_into

operation = sum_into("sum_e4m3", eight_bit_values(fraction_bits=3), fill=fill_below_two, type="uint8")
