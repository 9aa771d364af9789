"""The sum of all integers, over all values of their type, added to y."""

from sum_into import sum_into

operation = sum_into("sum_of_integers", lambda a: a)
