"""What to try, as data: a condition over a kernel's facts, what it means, what to do, and the rung that does it.

Facts are those of `facts.facts_of`. Conditions and weights are `core.expr` expressions; a weight estimates, in percent
of the running time, what is to be gained, and decides the order.
"""

from __future__ import annotations

from gemmlab.analysis.advice.accesses import MEMORY
from gemmlab.analysis.advice.pace import PACE
from gemmlab.analysis.advice.row import Advice
from gemmlab.analysis.advice.waste import WASTE

__all__ = ["ADVICE", "Advice"]

ADVICE = (*WASTE, *MEMORY, *PACE)
