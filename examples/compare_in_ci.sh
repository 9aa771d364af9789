#!/bin/sh
# Did a change make a kernel slower? A step of a CI job:
#
#   sh compare_in_ci.sh baseline.json
#
# The first run writes the baseline. Keep it in the repository; it is valid for the machine that made it. Later runs end
# with 0 if nothing became slower, with 1 if a kernel is surely slower or wrong, and with 2 if the two records cannot be
# compared. If a change is meant to cost time, commit a new baseline with it.
set -eu
baseline=$1

# Name kernels by id or .cu file; add --device cuda for a GPU. Times differ between processes, so there are several.
gemmlab bench packed --sizes 256 --rounds 5 --processes 2 --peers none --no-naive --save new.json

if [ ! -f "$baseline" ]; then
    mv new.json "$baseline"
    echo "no baseline yet: $baseline is written"
    exit 0
fi

# Speeds are relative to the multiply-add peak of the same rounds, so that a slow day of the machine does not count.
gemmlab compare "$baseline" new.json --relative-to probe --threshold 5 --require-all
