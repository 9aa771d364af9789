"""The figures of an explanation in reading order, for one kernel or for two side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gemmlab.analysis.explanation import Explanation
from gemmlab.analysis.main_loop import LOOP_CACHE_BYTES, LoopReport
from gemmlab.core.counters import SHARED_LOAD, SHARED_STORE
from gemmlab.core.numerals import plain

_SHOWN_IN_MIX = 8


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its group, such as `"bounds"`, its name, and its value as text."""

    group: str
    name: str
    text: str


def figures(explained: Explanation) -> list[Figure]:
    """Return all figures. Those of the main loop are left out if there is none."""
    groups = {
        "resources": _resources(explained),
        "bounds": _bounds(explained),
        "shared memory": _shared(explained),
        "main loop": _loop(explained.loop) if explained.loop is not None else iter(()),
    }
    return [Figure(group, name, text) for group, lines in groups.items() for name, text in lines]


def side_by_side(one: Explanation, two: Explanation) -> list[tuple[Figure, str]]:
    """Return the figures of `one`, each with the text of the same figure of `two`.

    A figure that only one of them has is included; the other's text is empty.
    """
    first, second = ({(f.group, f.name): f.text for f in figures(explained)} for explained in (one, two))
    groups = list(dict.fromkeys(group for group, _name in (*first, *second)))
    # Figures that only the second kernel has follow the first kernel's figures of the same group.
    keys = sorted(dict.fromkeys((*first, *second)), key=lambda key: groups.index(key[0]))
    return [(Figure(*key, first.get(key, "")), second.get(key, "")) for key in keys]


def _resources(explained: Explanation) -> Iterator[tuple[str, str]]:
    has, found = explained.resources, explained.occupancy.found
    yield "registers a thread", f"{has.registers}"
    yield "shared memory a block", f"{has.smem_bytes:,} B ({has.static_smem_bytes:,} static)"
    spills = "?" if has.spill_stores is None else f"{has.spill_stores} B stored, {has.spill_loads} B loaded"
    yield "spills a thread", spills if has.spilled or has.spill_stores is None else "none"
    yield "stack a thread", f"{has.stack_bytes} B"
    yield "code", f"{has.code_bytes:,} B"
    yield "threads a block", f"{explained.subject.threads}"
    limited = " and ".join(explained.occupancy.binding)
    yield "occupancy", f"{found.warps} of {found.warps_per_sm} warps ({found.fraction:.0%}), by {limited}"


def _bounds(explained: Explanation) -> Iterator[tuple[str, str]]:
    roofline, unit = explained.roofline, explained.subject.unit
    for level in roofline.levels if explained.subject.arithmetic else ():
        low, high = plain(level.intensity_least, 3), plain(level.intensity_most, 3)
        yield f"FLOP/B, {level.name}", low if low == high else f"{low} to {high}"
    if explained.issue is not None:
        yield "main loop at best", f"{explained.issue.best:.0%} of {explained.issue.arithmetic} peak"
    yield "bound", f"{roofline.bound:,.0f} {unit} by {roofline.bound_by}"


def _shared(explained: Explanation) -> Iterator[tuple[str, str]]:
    facts = explained.facts
    for kind in (SHARED_LOAD, SHARED_STORE):
        name = kind.replace(" ", "_")
        wavefronts, excess = facts[f"{name}_wavefronts"], facts[f"{name}_excess"]
        share = f" ({excess / wavefronts:.0%})" if excess else ""
        yield f"{kind} wavefronts", f"{wavefronts:,.0f}, excess {excess:,.0f}{share}"


def _loop(loop: LoopReport) -> Iterator[tuple[str, str]]:
    yield "source lines", ", ".join(map(str, loop.lines))
    mix = [f"{plain(count)} {name}" for name, count in loop.mix.items()]
    rest = f", {len(mix) - _SHOWN_IN_MIX} other opcodes" if len(mix) > _SHOWN_IN_MIX else ""
    yield "instructions", plain(loop.executed)
    yield "mix", ", ".join(mix[:_SHOWN_IN_MIX]) + rest
    yield "FFMA share", f"{loop.ffma_share:.1%}"
    yield "LDS.128, LDG.128", f"{plain(loop.wide_shared)}, {plain(loop.wide_global)}"
    yield "reuse rate", "" if loop.reuse_rate is None else f"{loop.reuse_rate:.1%} of register operands"
    yield "register bank conflicts", f"{loop.conflicted} instructions, {loop.conflict_cycles} cycles"
    yield "moved accumulators", f"{loop.moved}"
    yield "stall fields", f"{loop.stall_cycles} cycles in all: what one warp alone needs at least"
    yield "asks for another warp", f"{loop.yields} instructions"
    yield "waits for a barrier", f"{loop.waits} instructions; {loop.barriers:.3g} BAR"
    yield "jumps inside", f"{loop.jumps}"
    cache = "more" if loop.code_bytes > LOOP_CACHE_BYTES else "less"
    yield (
        "loop bytes",
        f"{loop.code_bytes:,} B, {cache} than the {LOOP_CACHE_BYTES:,} B of a partition's cache (Turing)",
    )
    if loop.never_ran:
        yield "never ran", f"{loop.never_ran} instructions"
