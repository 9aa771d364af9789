"""The explanation of one kernel: all reports, facts and findings together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from gemmlab.analysis.access_sites import AccessRow, access_rows, instruction_rows
from gemmlab.analysis.copied_bytes import copied_bytes
from gemmlab.analysis.findings import Finding, find
from gemmlab.analysis.issue_slots import IssueReport, explain_issue, in_words
from gemmlab.analysis.kernel_facts import facts_of
from gemmlab.analysis.main_loop import LoopReport, explain_loop
from gemmlab.analysis.occupancy import OccupancyReport, explain_occupancy
from gemmlab.analysis.resources import ResourceReport, explain_resources
from gemmlab.analysis.roofline import RooflineReport, explain_roofline
from gemmlab.analysis.store_steps import cure_of_stores
from gemmlab.analysis.subject import Subject, observe
from gemmlab.analysis.worst_sites import worst_rows, worst_words
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import GpuModel
from gemmlab.core.notebook_view import Display, Grid, View, grid
from gemmlab.core.tabular import Row, Tabular
from gemmlab.core.words import sentence
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.sass.source_places import call_sites
from gemmlab.toolchain.ptxas_log import Remark

_NO_TRUST = "Its figures and results cannot be trusted."
_RIGHT = "The results of this run are right all the same; at another size, or on a GPU, they need not be."


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Display, Tabular):
    """The explanation of one kernel on one GPU."""

    subject: Subject
    occupancy: OccupancyReport
    resources: ResourceReport
    roofline: RooflineReport
    accesses: tuple[AccessRow, ...]
    loop: LoopReport | None
    """The main loop; `None` if no loop that ran contains the kernel's arithmetic."""
    issue: IssueReport | None
    """Busy cycles of the main loop; `None` without a main loop, and for a main loop without known arithmetic."""
    issue_words: tuple[str, ...]
    facts: Mapping[str, float]
    findings: tuple[Finding, ...]

    def _line(self) -> str:
        subject, roofline = self.subject, self.roofline
        faults = f"; {_faults(subject)}" if _faults(subject) else ""
        keys = ", ".join(finding.key for finding in self.findings) or "none of the known findings"
        return (
            f"{subject.name} on {subject.model.name}: at most {roofline.bound:,.0f} {subject.unit} "
            f"by {roofline.bound_by}; {keys}{faults}"
        )

    def _view(self, *lines: str) -> View:
        subject = self.subject
        faults = (*(hazard.explain() for hazard in subject.hazards), *subject.wrong)
        code = [] if self.loop is None else [one.text for one in self.loop.instructions]
        return View(
            f"{subject.name}: {subject.arch} code on {subject.model.name}, counted at {subject.size.label}",
            _faults(subject), not faults,
            (*faults, f"at most {self.roofline.bound:,.0f} {subject.unit} by {self.roofline.bound_by}", *lines),
            self._grids(), folded=(("main loop", "\n".join(code)),) if code else (), notes=tuple(subject.traits),
        )  # fmt: skip

    def _grids(self) -> tuple[Grid, ...]:
        findings = grid(
            ("finding", "", "what to try", "predicted gain", "rung"),
            ((one.key, one.text, one.attempt, one.gain_words, one.rung) for one in self.findings), texts=range(5),
        )  # fmt: skip
        places = grid(
            ("memory at", "opcode", "requests", "sectors/request", "wavefronts", "excess", "of L1 time"),
            ((f"{row.file}:{row.line}", row.opcode, row.requests, row.sectors_per_request, row.wavefronts, row.excess,
              f"{row.share:.1%}") for row in self.accesses),
            texts=(0, 1),
        )  # fmt: skip
        return tuple(table for table in (findings, places) if table.rows)

    def rows(self) -> list[Row]:
        """Return a row for each opcode of a source line that accessed memory: the figures of its `AccessRow`."""
        return [{**asdict(row), "excess": row.excess, "sectors_per_request": row.sectors_per_request}
                for row in self.accesses]  # fmt: skip

    def __str__(self) -> str:
        """Return lines: kernel and GPU, traits, hazards, findings (the heaviest first), and the bound."""
        subject, roofline = self.subject, self.roofline
        found = [f"{number}. {one.text} {one.attempt} {one.gain}" for number, one in enumerate(self.findings, 1)]
        return "\n".join([
            f"{subject.name}: {subject.arch} code on {subject.model.name}, counted on {subject.counters.origin}",
            *(f"it {trait}" for trait in subject.traits), *(hazard.explain() for hazard in subject.hazards),
            *(found or ["none of the known findings"]),
            f"at most {roofline.bound:,.0f} {subject.unit} by {roofline.bound_by}",
        ])  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain JSON values, the loop's instructions as text."""
        subject = self.subject
        hazards = [asdict(hazard.without_folders()) for hazard in subject.hazards]
        return {
            "kernel": subject.name, "config": dict(subject.config), "op": subject.kernel and subject.kernel.op,
            "arch": subject.arch, "gpu": subject.model.name, "size": subject.size.label,
            "compiler": subject.artifact.compiler, "code_sha256": subject.artifact.digest,
            "origin": subject.counters.origin, "hazards": hazards, "wrong": list(subject.wrong),
            "traits": subject.traits,
            "grid": list(subject.launch.grid), "threads": list(subject.launch.threads),
            "resources": asdict(self.resources),
            "occupancy": _occupancy(self.occupancy),
            "roofline": {**asdict(self.roofline), "unit": subject.unit},
            "accesses": self.rows(),
            "main_loop": None if self.loop is None else _loop(self.loop),
            "issue": None if self.issue is None else {
                **asdict(self.issue), "busiest": self.issue.busiest, "best": self.issue.best,
                "words": list(self.issue_words),
            },
            "facts": {name: float(value) for name, value in self.facts.items()},
            "findings": [{**asdict(finding), "gain": finding.gain} for finding in self.findings],
        }  # fmt: skip


def explain(kernel: Kernel, arch: str, model: GpuModel, config: Mapping[str, int], sizes: str = "") -> Explanation:
    """Compile the kernel for `arch`, run it once on the emulator and explain the run for the GPU `model`.

    `sizes` is the problem's size, such as `"256x256x256"`; by default `observe` chooses one. Raises as `observe` does.
    """
    return explain_subject(observe(kernel, arch, model, config, sizes))


def explain_subject(subject: Subject) -> Explanation:
    """Return the explanation of a run. This is a pure function of its argument."""
    resources = explain_resources(subject.artifact.resources, subject.launch.smem_bytes)
    barriers = subject.artifact.resources.get("barriers", 0)
    occupancy = explain_occupancy(subject.limits, resources.registers, resources.smem_bytes, subject.threads, barriers)
    accesses = tuple(access_rows(subject.counters))
    loop = explain_loop(subject.function, subject.counters.sites, subject.arch)
    issue = explain_issue(loop, subject.limits) if loop is not None else None
    words = in_words(issue, loop, subject.limits) if loop is not None and issue is not None else []
    roofline = explain_roofline(
        subject.counters, subject.model, issue, subject.size, subject.scaled, subject.precision,
        copied_bytes(subject.counters, subject.launch),
    )  # fmt: skip
    apart = instruction_rows(subject.counters)
    facts = facts_of(subject, occupancy, resources, apart, loop, issue, roofline)
    quoted = words_of(subject, occupancy, apart)
    rungs = ladder("gemm" if subject.kernel is None else subject.kernel.op, "cuda")
    findings = find(subject.kernel, rungs, facts, quoted, arch=subject.arch)
    return Explanation(subject, occupancy, resources, roofline, accesses, loop, issue, tuple(words), facts,
                       tuple(findings))  # fmt: skip


def words_of(subject: Subject, occupancy: OccupancyReport, rows: Sequence[AccessRow]) -> dict[str, str]:
    """Return the texts that findings may quote besides the facts, by name. Each of `rows` is one instruction's."""
    binding = " and ".join(occupancy.binding)
    return {
        "binding": binding,
        "wrong_words": sentence("; ".join(subject.wrong)),
        "trust_words": _NO_TRUST if subject.wrong or subject.kernel is None else _RIGHT,
        "serialized_words": _remark(subject.serialized),
        "ignored_words": _remark(subject.setmaxnreg_ignored),
        **worst_words(rows, _call_sites(subject)),
        "store_cure": cure_of_stores(subject.counters, worst_rows(rows, "store_conflict")),
    }


def _faults(subject: Subject) -> str:
    """Return `WRONG`, `HAZARDS`, both or neither."""
    return ", ".join(["WRONG"] * bool(subject.wrong) + ["HAZARDS"] * bool(subject.hazards))


def _call_sites(subject: Subject) -> dict[int, str]:
    """Return `call_sites` of the subject's code; empty if its line information is malformed."""
    with suppress(UsageError):
        return call_sites(subject.artifact, subject.function)
    return {}


def _remark(remark: Remark | None) -> str:
    """Return a remark of ptxas with its place; empty for `None`."""
    if remark is None:
        return ""
    return f"{remark.text} ({remark.place})" if remark.place else remark.text


def _occupancy(report: OccupancyReport) -> dict[str, Any]:
    found = report.found
    return {
        "blocks": found.blocks, "warps": found.warps, "warps_per_sm": found.warps_per_sm, "fraction": found.fraction,
        "allowed": dict(found.allowed), "binding": list(report.binding), "steps": list(report.steps),
        "next_registers": report.next_registers, "next_smem": report.next_smem,
    }  # fmt: skip


def _loop(loop: LoopReport) -> dict[str, Any]:
    counts = {field.name: getattr(loop, field.name) for field in fields(loop) if field.name != "instructions"}
    code = [{"address": i.address, "text": i.text, "stall": i.control.stall, "line": i.line[1] if i.line else 0}
            for i in loop.instructions]  # fmt: skip
    return {**counts, "mix": dict(loop.mix), "pipes": dict(loop.pipes), "executed": loop.executed,
            "ffma_share": loop.ffma_share, "instructions": code}  # fmt: skip
