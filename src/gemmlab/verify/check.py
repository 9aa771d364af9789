"""Check a kernel: run every case of its operation between guard bands, and compare the results element by element."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from gemmlab.core.errors import TimeLimitError, UsageError
from gemmlab.core.hazard import UNFINISHED
from gemmlab.core.time_limit import require_time
from gemmlab.devices.device import Device, own
from gemmlab.kernels.bound import place
from gemmlab.kernels.claims import demand
from gemmlab.kernels.fitting import factor_notes, fitted, with_factors
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.footprint import check_bytes, require_memory
from gemmlab.ops.op import Op, Problem
from gemmlab.verify.case_tally import Progress, Tally
from gemmlab.verify.check_report import CheckReport
from gemmlab.verify.diagnosis import described, far_cases, needs
from gemmlab.verify.expectations import judge_claims, require_counters, require_known_names, unjudged
from gemmlab.verify.guarded_run import GuardedRun, compare_results
from gemmlab.verify.leading_lines import with_lines
from gemmlab.verify.nan_sources import nan_sources
from gemmlab.verify.result_cause import result_cause
from gemmlab.verify.stray_words import without_stray


def check_kernel(
    kernel: Kernel,
    device: Device,
    op: Op,
    *,
    config: Mapping[str, int] | None = None,
    threads: int = 1,
    cases: Iterable[Problem] | None = None,
    scale: str = "quick",
    seed: int = 0,
    progress: Progress | None = None,
) -> CheckReport:
    """Run `kernel` on every case (default: the operation's, in the layouts the kernel reads) and check each result.

    Results must lie within the elementwise bound. Inputs, guard bands and the gaps between rows must not change; memory
    that must not be read holds NaN. Operands start at varying distances from an aligned address. The same `seed` gives
    the same data.

    On a device that counts (`CountingDevice`), a case with a hazard fails; reads of unwritten memory that reach no
    result are only reported. Cases that the kernel does not take, or with contents in `Kernel.untried`, are left out;
    instead of default cases, similar ones are run that it takes. If the kernel reads an operand whatever its factor is,
    a factor 0 becomes 1 (`with_factors`). A few failures, an unfinished run or a time limit (`core.time_limit`) end the
    check, and the report says how far it came.

    Without `config` and `cases`, more follows. If the kernel failed, a search finds the conditions under which it is
    right (`needs`). If it passed, or conditions were found, it runs with rows far apart (`far_rows`). If it passed, a
    device that counts compares the statements of the kernel's file with its counters.

    Before the first case is run, raises `MemoryError` for a case that needs more memory than there is, and `UsageError`
    for an illegal `config`, if no case is left, if a statement names nothing that is counted, or if counters judge the
    kernel (an exercise) and the device does not count; then the errors of building and launching. Several threads may
    check at once.
    """
    require_known_names(kernel, op)
    device = own(device)
    require_counters(kernel, device)
    placed = place(kernel, device, config)
    whole = cases if cases is not None else op.cases(kernel.layouts, np.random.default_rng(seed), scale)
    wanted = [with_factors(kernel, op, problem) for problem in whole]
    reasons = [kernel.refusal(placed.config, op.scalars(problem)) for problem in wanted]
    planned = [problem for problem, reason in zip(wanted, reasons, strict=True) if not reason]
    refused = Counter(filter(None, reasons))
    if refused and cases is None:
        planned = list(dict.fromkeys([*planned, *fitted(kernel, op, placed.config, wanted)]))
    for name in kernel.untried:
        left = [problem for problem in planned if getattr(problem, "contents", "") != name]
        if len(left) < len(planned):
            refused[f"other numbers than the {name} ones, which its exercise is not about"] = len(planned) - len(left)
        planned = left
    if wanted and not planned:
        raise UsageError(f"{kernel.id} takes none of the sizes: {'; '.join(refused)}")
    for problem in planned:
        require_memory(check_bytes(op, problem), f"checking size {problem.label}")
    traits = [*factor_notes(kernel, op), *unjudged(kernel, stated=cases is not None or bool(config))]
    tally = Tally(
        kernel.id, device.id, placed.config, threads, seed, refused, traits,
        kernel.precision_in(placed.config),
    )  # fmt: skip
    for index, problem in enumerate(planned):
        contents = op.fill(problem, np.random.default_rng([seed, index]))
        shift = index % 16
        case = GuardedRun(placed, op, problem, contents, shift=shift, threads=threads)
        try:
            require_time(kernel.id)
            observation = case.run(races=True)
        except TimeLimitError as error:
            tally.stop(problem.label, len(planned), error)
            return tally.report(len(planned))
        mismatches = []
        for compared in compare_results(placed, op, problem, contents, case.guarded):
            mismatches.append(compared.mismatch)
            tally.ratio(problem.label, compared.worst_ratio, compared.source_error)
        violations = [v for guarded in case.guarded.values() for v in guarded.violations()]
        hazards = observation.hazards if observation else ()
        if observation and hazards and not any(mismatches) and not violations:
            hazards, strays = without_stray(
                placed, op, problem, contents, observation, case.guarded, shift=shift
            )  # fmt: skip
            tally.strays(strays)
        hazards = described(case.artifact, hazards, case.places)
        notes = []
        if case.nonzero_tickets:
            notes.append(f"{case.nonzero_tickets} of its tickets are not 0 after the launch; the next one needs zeros")
        wrongs = [] if observation and observation.stopped else [wrong for wrong in mismatches if wrong]
        read = nan_sources(placed, op, problem, contents, wrongs, shift=shift, threads=threads)
        hints = {
            hint for wrong in wrongs
            if (hint := result_cause(
                placed, op, problem, contents, wrong, hazards=hazards, sources=read, shift=shift, threads=threads
            ))
        }  # fmt: skip
        tally.case(problem, mismatches, violations, [*notes, *hints], padded=_is_padded(op, problem), hazards=hazards)
        if progress:
            progress(index + 1, len(planned))
        if tally.enough or (observation and any(hazard.kind == UNFINISHED for hazard in observation.hazards)):
            break
    if cases is not None or config:
        return tally.report(len(planned))
    extra, conditions, probed = 0, None, False
    try:
        if tally.unsound:
            faults = tally.faults()
            conditions, probed = needs(placed, op, planned, faults.failing, faults.passing, threads=threads, seed=seed)
            conditions = with_lines(conditions, kernel.path)
        unsound = tally.unsound
        # With a fault that is not understood, a wrong result of far rows would tell nothing: it may have that cause.
        if not unsound or conditions:
            for far in far_cases(placed, op, conditions or (), threads=threads, seed=seed):
                extra += 1
                wrong = [compared.mismatch for compared in far.comparisons]
                tally.case(far.problem, wrong, (), hazards=far.hazards, far=far.operand)
        # Counters of a wrong kernel say nothing about a right one.
        for judgement in judge_claims(kernel, device, op, seed=seed) if not unsound else ():
            extra += 1
            claims = [judgement.broken] if judgement.broken else []
            tally.case(judgement.problem, (), (), suffix=f" (what {demand(judgement.broken)})", claims=claims)
            tally.criteria += judgement.judgements
    except TimeLimitError as error:
        tally.stop("what its file expects", len(planned) + extra, error)
    return tally.report(len(planned) + extra, conditions, probed=probed)


def _is_padded(op: Op, problem: Problem) -> bool:
    return any(operand.rows > 1 and operand.ld > max(1, operand.cols) for operand in op.operands(problem))
