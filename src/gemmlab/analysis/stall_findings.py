"""Warp states of a profiled kernel, the costliest first, and the findings that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmlab.analysis.advice import Advice
from gemmlab.analysis.findings import LEAST, Finding, find
from gemmlab.analysis.stall_reasons import STALLS, Stall
from gemmlab.kernels.kernel import Kernel
from gemmlab.observe.profile import Profile

_ISSUE = ("smsp__issue_active.avg.pct_of_peak_sustained_active", "smsp__inst_issued.avg.pct_of_peak_sustained_active")
_RATE = "smsp__issue_active.avg.per_cycle_active"
_WARPS = "smsp__warps_active.avg.per_cycle_active"
_LIMITS = tuple(
    f"launch__occupancy_limit_{what}" for what in ("barriers", "blocks", "registers", "shared_mem", "warps")
)

_NAMED = {stall.key for stall in STALLS}
_UNKNOWN = ("A state that only a newer Nsight Compute reports.", "Not known here.", "See its guide.")


@dataclass(frozen=True, slots=True)
class StateCost:
    """One state of a kernel's warps with its cost. Figures that were not measured are `None`."""

    stall: Stall
    cycles: float | None
    """Cycles in this state per issued instruction."""
    share: float
    """Fraction of the time between two instructions of a warp that is spent in this state."""
    samples: float | None
    """Number of samples in which a warp was in this state."""
    not_issued: float | None
    """Number of samples in which a warp was in this state and its partition issued no instruction."""
    cost: float | None
    """Estimated percentage of the partitions' cycles in which nothing was issued because of this state.

    The cycles without an issue are divided among the states in proportion to `not_issued`; without such samples to
    `cycles`, else to `samples`. 0 for a state that is not a wait; `None` for others if the number of cycles without an
    issue is unknown.
    """


def issue_percent(profile: Profile) -> float | None:
    """Return the percentage of active cycles in which a partition issues an instruction; `None` if unknown."""
    if (percent := profile.first(*_ISSUE)) is not None:
        return percent
    if (rate := profile.first(_RATE)) is not None:
        return 100 * rate
    warps, total = profile.first(_WARPS), sum(profile.stall_cycles.values())
    return 100 * warps / total if warps is not None and total else None


def waiting(profile: Profile) -> tuple[StateCost, ...]:
    """Return the cost of every measured state of the warps, the costliest first."""
    cycles, samples = profile.stall_cycles, profile.stall_samples()
    without = profile.stall_samples(not_issued=True)
    measured = {**cycles, **samples}
    known = [stall for stall in STALLS if stall.key in measured]
    known += [Stall(key, *_UNKNOWN) for key in measured if key not in _NAMED]
    basis = without if any(without.get(stall.key) for stall in known if stall.waits) else cycles or samples
    blamed = sum(basis.get(stall.key, 0.0) for stall in known if stall.waits)
    issued = issue_percent(profile)
    idle = None if issued is None else max(0.0, 100 - issued)
    whole = cycles or samples

    def cost(stall: Stall) -> float | None:
        if not stall.waits or not blamed:
            return 0.0
        return None if idle is None else idle * basis.get(stall.key, 0.0) / blamed

    found = [
        StateCost(
            stall, cycles.get(stall.key), whole.get(stall.key, 0.0) / (sum(whole.values()) or 1.0),
            samples.get(stall.key), without.get(stall.key), cost(stall),
        )
        for stall in known
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (-(one.cost or 0.0), not one.stall.waits, -one.share)))


def multiprocessors(profile: Profile) -> int:
    """Return the number of SMs of the profiled GPU, or 0 if unknown.

    It is computed from the numbers of blocks, of waves, and of blocks that fit on an SM: a wave fills all SMs.
    """
    blocks, waves = profile.first("launch__grid_size"), profile.first("launch__waves_per_multiprocessor")
    resident = min((limit for name in _LIMITS if (limit := profile.first(name))), default=0.0)
    if not blocks or not waves or not resident:
        return 0
    found = blocks / waves / resident
    # A result that is not an integer comes from a rounded number of waves and is useless.
    return round(found) if abs(found - round(found)) < 0.02 else 0


def stall_facts(profile: Profile) -> dict[str, float]:
    """Return the facts that `STALL_ADVICE` and `FEW_BLOCKS` may name.

    They are `KEY_cost`, `KEY_pct` (percentage of a warp's time) and `KEY_cycles` of every state of a warp; `issue_pct`;
    `latency`, the cycles between two instructions of a warp; the numbers of `blocks` and `sms`; and `idle_pct`, the
    percentage of SMs that get no block. A fact that was not measured is 0.
    """
    found = {one.stall.key: one for one in waiting(profile)}
    facts = {"issue_pct": issue_percent(profile) or 0.0, "latency": sum(profile.stall_cycles.values())}
    facts |= {"blocks": profile.first("launch__grid_size") or 0.0, "sms": float(multiprocessors(profile))}
    facts["idle_pct"] = max(0.0, 100 * (1 - facts["blocks"] / facts["sms"])) if facts["sms"] else 0.0
    for stall in STALLS:
        one = found.get(stall.key)
        facts[f"{stall.key}_cost"] = (one.cost or 0.0) if one else 0.0
        facts[f"{stall.key}_pct"] = 100 * one.share if one else 0.0
        facts[f"{stall.key}_cycles"] = (one.cycles or 0.0) if one else 0.0
    return facts


def _advice(stall: Stall) -> Advice:
    return Advice(
        f"stall: {stall.name}",
        f"{stall.key}_cost >= {LEAST:.0f}",
        f"{stall.key}_cost",
        f"{{{stall.key}_pct:.0f}} % of a warp's time is `{stall.name}`, to which about {{{stall.key}_cost:.2g}} % of "
        f"the cycles are lost. {stall.meaning} Usually: {stall.cause}",
        stall.attempt,
        stall.rungs,
        any_precision=stall.key == "math_pipe_throttle",
    )


FEW_BLOCKS = Advice(
    "few blocks",
    "idle_pct >= 10",
    # The offset ranks this before every stall, because stalls describe only the SMs that have work.
    "100 + idle_pct",
    "{blocks:.0f} blocks for {sms:.0f} SMs: {idle_pct:.0f} % of the GPU has nothing to do.",
    "Profile a larger size: the stalls are those of the SMs that work. If this is the size that counts, smaller tiles, "
    "or several blocks that share a sum.",
)
STALL_ADVICE = tuple(_advice(stall) for stall in STALLS if stall.waits)


def stall_findings(
    profile: Profile, kernel: Kernel | None = None, ladder: Sequence[Kernel] = ()
) -> tuple[Finding, ...]:
    """Return a finding for each stall to which at least 1 % of the cycles are lost, the costliest first.

    If at least 10 % of the SMs get no block, a finding that says so comes first. A finding may name a rung of `ladder`
    that comes after `kernel` and applies the remedy. There are no findings for a library to compare with
    (`Profile.is_library`).
    """
    if profile.is_library:
        return ()
    facts: Mapping[str, float] = stall_facts(profile)
    return tuple(find(kernel, ladder, facts, {}, (FEW_BLOCKS, *STALL_ADVICE)))
