"""The choice of a kernel for a product: the kernel, the reason, and the other candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gemmlab.core.notebook_view import Display, View, grid
from gemmlab.core.numerals import duration
from gemmlab.core.words import chosen
from gemmlab.dispatch.piece_plan import PiecePlan
from gemmlab.dispatch.regions import Regions

RECORD, RULE, FORCED, TUNED = "record", "rule", "forced", "tuned"
_MOST_SHOWN = 6


@dataclass(frozen=True, slots=True, repr=False)
class Candidate(Display):
    """One kernel and configuration that was considered."""

    kernel: str
    precision: str
    config: Mapping[str, int]
    us: float
    """Measured or estimated time in microseconds, by which the choice is made."""
    measured: bool
    """True if `us` was measured for this problem on this GPU model; false if the rule of `waves.py` estimates it."""
    blocks: int
    """Number of blocks of the launch."""
    resident: int
    """Number of blocks that a multiprocessor runs at a time."""
    rounds: int
    """Number of rounds, of `resident` blocks each, on the multiprocessor with the most blocks."""
    in_order: bool
    """True if each result is one chain of multiply-adds in the order of k."""
    corrected: bool = False
    """True if `us` is an estimate corrected by times of other products (`correction.py`)."""

    @property
    def name(self) -> str:
        """Kernel and configuration in words."""
        return _name(self.kernel, self.config)

    @property
    def basis(self) -> str:
        """`"measured"` or `"estimated"`."""
        return "measured" if self.measured else "estimated"

    def _line(self) -> str:
        return f"{self.name}: {duration(self.us)} {self.basis}"


@dataclass(frozen=True, slots=True, repr=False)
class Choice(Display):
    """The kernel and configuration that run, and why."""

    kernel: str
    config: Mapping[str, int]
    basis: str
    """`"record"` if a time measured for this product decides, `"rule"` if an estimate or a fixed rule does, `"forced"`
    if the caller names the kernel or parameters, `"tuned"` if `gemmlab tune --library` measured the choice on this
    machine.
    """
    where: str
    """Name of the GPU model, or `"cpu"`."""
    problem: str
    """Extents, layout and requested precision in words."""
    reason: str
    order: str = ""
    """The order in which the terms of a result are added: `"k"` for one chain of multiply-adds in the order of k, else
    a digest of everything that determines the order. Results of equal order have equal bits. Empty on a CPU.
    """
    workspace_bytes: int = 0
    """Bytes of GPU memory that the call needs beside operands and result; 0 on a CPU."""
    regions: Regions | None = None
    """The regions of C that are computed one after another, so that the workspace stays small; `None` for one."""
    machine_code: str = ""
    """Digest and compiler of the package's machine code that the GPU runs; empty if the code is compiled here."""
    considered: tuple[Candidate, ...] = ()
    """The kernels and configurations whose times were compared, the fastest first; empty on a CPU and if the caller
    names the kernel or parameters. Estimates come last if times of the same precision were measured for this product,
    and estimates without correction if others of the same precision have one.
    """
    refused: Mapping[str, str] = field(default_factory=dict)
    """Kernel of the table of measured times that was not considered -> reason."""
    pieces: PiecePlan | None = None
    """The pieces of a product within a bound on memory; `None` for one that is computed at once."""

    def same_code(self, other: Choice) -> bool:
        """Return whether kernel and configuration are those of `other`."""
        return self.kernel == other.kernel and dict(self.config) == dict(other.config)

    @property
    def name(self) -> str:
        """Kernel and configuration in words."""
        return _name(self.kernel, self.config)

    def _line(self) -> str:
        return f"{self.kernel} for {self.problem} on {self.where}, by {self.basis}; {chosen(self.config)}".rstrip("; ")

    def _view(self) -> View:
        rows = (
            (one.name, one.us, one.basis, one.blocks, one.resident, one.rounds) for one in self.considered[:_MOST_SHOWN]
        )
        considered = grid(("considered", "us", "", "blocks", "per SM", "rounds"), rows, texts=(0, 2))
        more = [f"and {len(self.considered) - _MOST_SHOWN} more"] if len(self.considered) > _MOST_SHOWN else []
        return View(
            self.name, self.basis,
            lines=(f"for {self.problem} on {self.where}", self.reason, *self._of_pieces()),
            grids=(considered,) if considered.rows else (),
            notes=(*more, *(f"not {kernel}: {why}" for kernel, why in self.refused.items())),
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {**asdict(self), "pieces": None if self.pieces is None else self.pieces.to_json()}

    def _of_pieces(self) -> list[str]:
        return [] if self.pieces is None else self.pieces.lines()

    def __str__(self) -> str:
        lines = [
            self.name,
            f"  for {self.problem} on {self.where}",
            f"  {self.reason}",
        ]
        if self.order:
            lines.append(f"  order of the sums: {self.order}")
        if self.workspace_bytes:
            lines.append(f"  workspace: {self.workspace_bytes:,} bytes")
        if self.regions:
            lines.append(f"  {self.regions}, one after another, so that the workspace stays small")
        lines += [f"  {line}" for line in self._of_pieces()]
        if self.machine_code:
            lines.append(f"  machine code: {self.machine_code}")
        if self.considered and not self.considered[0].blocks:
            return "\n".join([*lines, "  the result is empty: nothing is launched"])
        if self.considered:
            both = len({one.measured for one in self.considered}) > 1
            lines.append(f"  considered{', measured ones before estimates' if both else ''}:")
        for one in self.considered[:_MOST_SHOWN]:
            lines.append(
                f"    {one.us:10.1f} us {one.basis}, {one.blocks} blocks in {one.rounds} "
                f"{'round' if one.rounds == 1 else 'rounds'} of {one.resident} per SM: {one.name}"
            )
        if len(self.considered) > _MOST_SHOWN:
            lines.append(f"    and {len(self.considered) - _MOST_SHOWN} more")
        lines += [f"    not {kernel}: {why}" for kernel, why in self.refused.items()]
        return "\n".join(lines)


def _name(kernel: str, config: Mapping[str, int]) -> str:
    """Return kernel and configuration in words."""
    return f"{kernel} {chosen(config)}".strip()
