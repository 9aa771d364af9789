"""The predicted gain of advice: the schedule of a block is simulated twice, the second time without the fault.

This is possible for faults that can be removed from the script of a block or the model's constants. Without the fault,
shared accesses take as many wavefronts as their bytes need, or global accesses as many sectors; registers are read
without bank conflicts; accesses to local memory are left out; or all code fits into the instruction cache. All else
stays, so the difference is the gain of the remedy alone. Advice that needs other code (larger tiles, two buffers,
copies of another kind) has no predicted gain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from gemmlab.analysis.access_sites import AccessRow, instruction_rows
from gemmlab.analysis.findings import Finding
from gemmlab.analysis.model.kernel_study import loads_of
from gemmlab.analysis.model.predict import Model
from gemmlab.analysis.model.script import Request, Script
from gemmlab.core import counters as core
from gemmlab.core.counters import Counters
from gemmlab.core.errors import UsageError
from gemmlab.core.program import Config
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.op import Op

_LINE_SECTORS = 4
_SHARED = {
    "load conflicts": core.SHARED_LOAD, "store conflicts": core.SHARED_STORE, "copy conflicts": core.ASYNC_COPY,
}  # fmt: skip
_GLOBAL = {"uncoalesced loads": core.GLOBAL_LOAD, "uncoalesced stores": core.GLOBAL_STORE}
_LOCAL = ("spills", "local memory")
_LOCAL_KINDS = (core.LOCAL_LOAD, core.LOCAL_STORE)
_BANKS, _LARGE = "register banks", "large loop"
_ANY_LINES = 1 << 20
"""Lines of 128 bytes in an instruction cache that holds the code of any kernel."""


def with_gains(
    findings: Sequence[Finding],
    known: Model,
    counters: Counters,
    kernel: Kernel,
    config: Config,
    op: Op,
    problem: object,
) -> tuple[Finding, ...]:
    """Return the findings, with the predicted gain of their advice in percent (at least 0) if the model can predict it.

    `known` is the kernel's model, `counters` are those of a run of the same code, and the gain is for `problem`. Raises
    `UsageError` if the kernel does not take `problem`, and if no time is predicted for it.
    """
    loads, nbytes = loads_of(kernel, config, problem), op.bytes_moved(problem)
    before = known.predict(loads, nbytes).time_us
    rows = {row.address: row for row in instruction_rows(counters)}
    by_index = {index: rows[site.address] for index, site in enumerate(counters.sites) if site.address in rows}
    found = []
    for finding in findings:
        cured, gain = _cured(finding.key, known, by_index), None
        # Without the fault the model may fit the kernel no longer.
        with suppress(UsageError):
            gain = None if cured is None else 100 * (before / cured.predict(loads, nbytes).time_us - 1)
        found.append(replace(finding, gain_pct=gain if gain is None else max(0.0, gain)))
    return tuple(found)


def _cured(key: str, known: Model, rows: Mapping[int, AccessRow]) -> Model | None:
    """Return the model without the fault that finding `key` names; `None` if the model cannot express that.

    A key of `rows` is an instruction's index in the code.
    """
    if key == _LARGE:
        constants = replace(known.constants, code_lines=_ANY_LINES)
        return replace(known, constants=constants, scheduled={})
    change = _change(key, rows)
    if change is None:
        return None
    scripts = {depth: change(script) for depth, script in known.study.scripts.items()}
    return Model(replace(known.study, scripts=scripts), known.gpu, known.constants)


def _change(key: str, rows: Mapping[int, AccessRow]) -> Callable[[Script], Script] | None:
    if key in _SHARED:
        ideal = {
            index: Request(row.wavefronts_ideal / row.requests, (), False)
            for index, row in rows.items() if row.kind == _SHARED[key]
        }  # fmt: skip
        return lambda script: _requesting(script, ideal, sectors=False)
    if key in _GLOBAL:
        ideal = {
            index: Request(max(1.0, row.sectors_ideal / row.requests / _LINE_SECTORS),
                           tuple(range(-(-row.sectors_ideal // row.requests))), False)
            for index, row in rows.items() if row.kind == _GLOBAL[key]
        }  # fmt: skip
        return lambda script: _requesting(script, ideal, sectors=True)
    if key == _BANKS:
        return lambda script: replace(script, code=tuple(replace(line, reads=()) for line in script.code))
    if key in _LOCAL:
        return _without_local
    return None


def _requesting(script: Script, ideal: Mapping[int, Request], *, sectors: bool) -> Script:
    """Return the script with cheaper requests. A key of `ideal` is an instruction's index in the code.

    Each request of such an instruction takes at most the cycles of L1 that its ideal request takes. With `sectors`, it
    keeps only the first of its own sectors, at most as many as the ideal request has; otherwise it keeps all of them.
    """
    known = {request: number for number, request in enumerate(script.requests)}
    warps = []
    for way in script.warps:
        changed = way.copy()
        for place in np.flatnonzero(np.isin(way[:, 0], list(ideal)) & (way[:, 1] >= 0)):
            own, best = script.requests[way[place, 1]], ideal[int(way[place, 0])]
            fewer = own.sectors[: len(best.sectors)] if sectors else own.sectors
            better = Request(min(own.l1, best.l1), fewer, own.store)
            changed[place, 1] = known.setdefault(better, len(known))
        warps.append(changed)
    return Script(script.code, tuple(known), tuple(warps))


def _without_local(script: Script) -> Script:
    keep = np.array([line.role not in _LOCAL_KINDS for line in script.code])
    return replace(script, warps=tuple(way[keep[way[:, 0]]] for way in script.warps))
