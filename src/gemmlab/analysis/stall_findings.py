"""What a profiled kernel waited for, the costliest first, and what follows from it."""

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
_UNKNOWN = ("A state that a newer Nsight Compute tells of.", "Not known here.", "See its guide.")


@dataclass(frozen=True, slots=True)
class Waited:
    """One state of a kernel's warps. What was not measured is `None`."""

    stall: Stall
    cycles: float | None
    """For each instruction that is issued."""
    share: float
    """Of all that time between two instructions of a warp."""
    samples: float | None
    not_issued: float | None
    cost: float | None
    """Percent of the partitions' cycles in which nothing was issued and this is why, estimated: by the samples without
    an issue, or in proportion to the cycles where there are none. `None` where nobody knows how often nothing was
    issued; 0 for a warp that does not wait.
    """


def issue_percent(profile: Profile) -> float | None:
    """How many percent of their active cycles the partitions issue an instruction in; `None` where it is not known."""
    if (said := profile.first(*_ISSUE)) is not None:
        return said
    if (rate := profile.first(_RATE)) is not None:
        return 100 * rate
    warps, total = profile.first(_WARPS), sum(profile.stall_cycles.values())
    return 100 * warps / total if warps is not None and total else None


def waiting(profile: Profile) -> tuple[Waited, ...]:
    """Every state in which warps were found, the costliest first; nothing where none was measured."""
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
        Waited(
            stall, cycles.get(stall.key), whole.get(stall.key, 0.0) / (sum(whole.values()) or 1.0),
            samples.get(stall.key), without.get(stall.key), cost(stall),
        )
        for stall in known
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (-(one.cost or 0.0), not one.stall.waits, -one.share)))


def multiprocessors(profile: Profile) -> int:
    """Of the GPU, by what the launch tells: a wave is as many blocks as all of them hold; 0 where that is not known."""
    blocks, waves = profile.first("launch__grid_size"), profile.first("launch__waves_per_multiprocessor")
    held = min((limit for name in _LIMITS if (limit := profile.first(name))), default=0.0)
    if not blocks or not waves or not held:
        return 0
    found = blocks / waves / held
    # Waves that were rounded tell nothing.
    return round(found) if abs(found - round(found)) < 0.02 else 0


def stall_facts(profile: Profile) -> dict[str, float]:
    """What `STALL_ADVICE` and `FEW_BLOCKS` may name: for every stall its cost, share and cycles, 0 where it was not
    measured; blocks and multiprocessors, and how many percent of these can have none.
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
    # Before any stall: those are of the SMs that work.
    "100 + idle_pct",
    "{blocks:.0f} blocks for {sms:.0f} SMs: {idle_pct:.0f} % of the GPU has nothing to do.",
    "Profile a larger size: the stalls are those of the SMs that work. If this is the size that counts, smaller tiles, "
    "or several blocks that share a sum.",
)
STALL_ADVICE = tuple(_advice(stall) for stall in STALLS if stall.waits)


def stall_findings(
    profile: Profile, kernel: Kernel | None = None, ladder: Sequence[Kernel] = ()
) -> tuple[Finding, ...]:
    """What a profile's stalls say, the costliest first, as `explain` finds things: only what costs 1 % or more. Before
    them, where there are fewer blocks than SMs, that.

    `kernel` and `ladder` serve to name a rung that does better; without a ladder none is named. A library is not
    given advice.
    """
    if profile.is_library:
        return ()
    facts: Mapping[str, float] = stall_facts(profile)
    return tuple(find(kernel, ladder, facts, {}, (FEW_BLOCKS, *STALL_ADVICE)))
