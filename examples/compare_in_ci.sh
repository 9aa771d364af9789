#!/bin/sh
# Did a change make a kernel slower? A step of a CI job:
#
#   sh compare_in_ci.sh baseline.json
#
# The first time it writes the baseline, which belongs into the repository and holds for the machine it was taken on.
# From then on it ends with 0 when nothing became slower, with 1 when a kernel is surely slower or computes something
# wrong, and with 2 when the two records cannot be compared. A change that is meant to cost time brings a new baseline.
set -eu
baseline=$1

# Kernels by name or .cu file; on a GPU: --device cuda. Several fresh processes, because they differ among themselves.
gemmlab bench packed --sizes 256 --rounds 5 --processes 2 --peers none --no-naive --save new.json

if [ ! -f "$baseline" ]; then
    mv new.json "$baseline"
    echo "no baseline yet: $baseline is written"
    exit 0
fi

# Beside the multiply-add peak that was probed in the same rounds, so that a slow day of the machine does not count.
gemmlab compare "$baseline" new.json --relative-to probe --threshold 5 --require-all
