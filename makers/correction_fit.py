"""Fit the trees that correct estimates of the library's kernels: `python correction_fit.py`, with lightgbm installed.

They are fitted to the times of `makers/likely_times.py`: to the logarithm of time / estimate, which depends on the
numbers of `dispatch/correction.py`, and to the regret of choosing by it. Products are divided into parts of which each
is judged by trees that do not know it. With `--judge FILE` other such times, which are in no part, judge the trees of
all products.

`--check` fits nothing: the exit code is 1 if the file of trees was not made of these times, this table and these
numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fitted_trees import fitted
from gemmlab.dispatch.forest import read_forest
from gemmlab.dispatch.measurements import CORRECTION
from likely_samples import TIMES, entries, feature_names, kernels, samples

FOLDS = 4
"""The number of parts of the products, each judged by trees of the others."""
AIM = 1.15
_Floats = npt.NDArray[np.float64]


def origin() -> str:
    """Return a digest of what trees are made of: the times, and the figures that estimates depend on."""
    figures = [
        (entry.kernel, sorted(entry.config.items()), entry.domain, entry.figures) for entry in entries().values()
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in TIMES) + repr(figures).encode()).hexdigest()[:16]


def say(name: str, regrets: _Floats) -> None:
    middle, most, worst = np.quantile(regrets, (0.5, 0.99, 1.0))
    above = np.count_nonzero(regrets > AIM)
    print(
        f"{name}: {len(regrets)} products, median {middle:.3f}, 99 % {most:.3f}, worst {worst:.2f}, above {AIM} {above}"
    )


def main(arguments: Sequence[str]) -> int:
    """Fit and write the trees; with `--check` return 1 if the file is not of these times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", type=Path, action="append", default=[], metavar="FILE")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    if options.check:
        shipped = read_forest(CORRECTION)
        return int(shipped.facts["origin"] != origin() or list(shipped.features) != feature_names())
    known, names = samples(*TIMES), feature_names()
    facts = {"origin": origin(), "kernels": kernels(), "products": len(np.unique(known.product))}
    part = np.random.default_rng(0).integers(0, FOLDS, known.product.max() + 1)[known.product]
    errors = np.zeros(len(known.us))
    for fold in range(FOLDS):
        errors[part == fold] = fitted(known.of(part != fold), names, facts).sums(known.of(part == fold).rows)
    say("estimates", known.regrets(0 * errors))
    say("corrected, each part by the others", known.regrets(errors))
    whole = fitted(known, names, facts)
    for path in options.judge:
        other = samples(path)
        say(str(path), other.regrets(whole.sums(other.rows)))
    whole.write(CORRECTION)
    print(f"{CORRECTION}: {CORRECTION.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
