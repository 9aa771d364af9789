"""Record complete tuning spaces on a GPU: every legal configuration is compiled, verified and timed, and the fastest
ones are timed again.

    python makers/record_spaces.py FOLDER                      all pairs of PAIRS, one after the other
    python makers/record_spaces.py FOLDER --pairs 1,2,5        some of them, by their numbers from 1
    python makers/record_spaces.py FOLDER --seconds 540        stop after 540 seconds; a second call goes on from there

Each pair of a rung and a size becomes a journal, `FOLDER/RUNG-SIZE.jsonl`; `--pack` compresses the journals for
benchmarks/results. A rung's code is the same at both of its sizes: it is compiled at the first, and the second journal
has the same seconds of compilation. The exit code is 3 without a GPU.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemmlab.core.errors import GemmlabError
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import named_kernel
from gemmlab.ops.catalog import find_op
from gemmlab.timing.prebuild import prebuild
from gemmlab.tuning.device_bench import DeviceBench, Subject
from gemmlab.tuning.journal import Event, Journal, JournaledBench
from gemmlab.tuning.outcomes import Build, Verdict
from gemmlab.tuning.search import Search
from gemmlab.tuning.session import header_of
from gemmlab.tuning.space import space_of
from gemmlab.tuning.strategies import Exhaustive, run_within_budget


@dataclass(frozen=True, slots=True)
class Pair:
    """A rung and a size whose space is recorded."""

    kernel: str
    size: str
    fit: bool
    """True for a space on which constants of the search are chosen, false for one on which the search is judged."""

    @property
    def file(self) -> str:
        return f"{self.kernel}-{self.size}.jsonl"


PAIRS = (
    Pair("thread_tile_2d", "1024", fit=True),
    Pair("thread_tile_2d", "512", fit=True),
    Pair("reduce_peak", "2^24", fit=True),
    Pair("reduce_peak", "2^20", fit=True),
    Pair("async_copy", "1024", fit=False),
    Pair("async_copy", "512", fit=False),
    Pair("vector_load", "1024", fit=False),
    Pair("vector_load", "512", fit=False),
)
"""The pairs to record. Six of them have more than 1,000 legal configurations. A rung has the same `fit` at both
of its sizes.
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", default="", help="numbers from 1, as 1,2,5")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--pack", action="store_true", help="compress finished journals, measure nothing")
    parser.add_argument("--count", action="store_true", help="print the sizes of the spaces, measure nothing")
    options = parser.parse_args(arguments)
    chosen = [PAIRS[int(number) - 1] for number in filter(None, options.pairs.split(","))] or list(PAIRS)
    try:
        if options.count:
            for pair in chosen:
                legal = len(space_of(named_kernel(pair.kernel).kernel))
                print(f"{pair.kernel} at {pair.size}: {legal:,} configurations")
        elif options.pack:
            pack(options.folder, chosen)
        else:
            record(options.folder, chosen, options.device, options.seconds)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def record(folder: Path, pairs: Sequence[Pair], device: str, seconds: float) -> None:
    """Record the pairs one after the other, for at most `seconds` in all."""
    started = time.monotonic()
    where, built = open_device(device, None), dict[str, list[Build]]()
    for pair in pairs:
        left = seconds - (time.monotonic() - started)
        if left <= 0:
            print(f"{pair.file}: no time was left: call it again")
            return
        named = named_kernel(pair.kernel)
        op = find_op(named.kernel.op)
        subject = Subject(
            named, op, tuple(op.parse_sizes(pair.size)), where, where.device_name.modes[0], space_of(named.kernel)
        )
        with (
            DeviceBench(subject) as bench,
            Journal(folder / pair.file, subject.space, header_of(subject)) as journal,
        ):
            if not journal.events:
                for build in built.get(pair.kernel, ()):
                    journal.append(Event(0.0, build))
            compile_known(subject, journal)
            journaled, known = JournaledBench(bench, journal), len(journal.events)
            spent = max((event.at for event in journal.events), default=0.0)
            search = Search(subject.space, journaled, spent + left)
            run_within_budget(Exhaustive(), search)
            # Code of an earlier run may come from another machine, so it may be missing in this one's cache.
            fresh = [event.outcome for event in journal.events[known:]]
            built.setdefault(pair.kernel, []).extend(one for one in fresh if isinstance(one, Build))
        progress = search.progress()
        print(f"{pair.file}: {progress.tried} tried, {progress.left} left, {progress.seconds:.0f} s in all", flush=True)


def compile_known(subject: Subject, journal: Journal) -> None:
    """Compile on all cores what the journal has as compiled but not as verified, in case this machine's cache lacks it.

    Otherwise each would be compiled within its verification, and its seconds would count there.
    """
    built = {event.outcome.place for event in journal.events if isinstance(event.outcome, Build)}
    built -= {event.outcome.place for event in journal.events if isinstance(event.outcome, Verdict)}
    kernel = subject.named.kernel
    configs = [kernel.configure(subject.space.config(place)) for place in sorted(built)]
    scalars = subject.op.scalars(subject.problem)
    prebuild([(kernel, kernel.instantiate(config, scalars)) for config in configs], subject.device)


def pack(folder: Path, pairs: Sequence[Pair]) -> None:
    """Replace the pairs' journals by compressed files; equal journals give equal files."""
    for pair in pairs:
        path = folder / pair.file
        if path.exists():
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
