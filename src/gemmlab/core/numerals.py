"""Numbers as people read them: few digits, and thousands separated."""

from __future__ import annotations

_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "us"))


def plain(value: float | None, digits: int = 4) -> str:
    """Return a number with `digits` significant digits; empty for `None`.

    A number with more digits before the point has all of these. A number below 0.0001 has an exponent.
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 10**digits - 0.5 else f"{value:,.{digits}g}"


def duration(time_us: float) -> str:
    """Return a time, given in microseconds, as text in s, ms or us with three digits: `13.5 ms`."""
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if time_us >= scale), _UNITS[-1])
    return f"{plain(time_us / scale, 3)} {unit}"
