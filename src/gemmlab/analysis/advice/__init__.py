"""Advice as data: a condition over a kernel's facts, its meaning, the remedy, and the rungs that apply the remedy.

Facts are those of `kernel_facts.facts_of`. Conditions and weights are `core.expr` expressions; a weight estimates the
gain in percent of the running time and decides the order.
"""

from __future__ import annotations

from gemmlab.analysis.advice.accesses import MEMORY
from gemmlab.analysis.advice.pace import PACE
from gemmlab.analysis.advice.row import Advice
from gemmlab.analysis.advice.waste import WASTE

__all__ = ["ADVICE", "Advice"]

ADVICE = (*WASTE, *MEMORY, *PACE)
