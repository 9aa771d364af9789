"""The blocks on products of several GPUs: measured times beside the model's, and predictions for more GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from blocks.markdown import markdown_table
from blocks.records import RESULTS

RECORDS = ("h200x2/distributed.json", "h200x4/distributed.json")
"""Records on 2 and 4 GPUs; the model's predictions are in each."""
SCHEMA = "gemmlab.distributed/1"
NOTHING = "*Not measured yet.*"


def measured(record: Mapping[str, Any]) -> str:
    """Return a table of measured times on one GPU and on all, the predicted time, and the share of the messages' time
    that is hidden behind the product.
    """
    rows = []
    for one in record["results"]:
        times = {name: median(values) for name, values in one["times_ms"].items()}
        exposed = {name: times["ours"] - times[name] for name in ("alone", "pieces")}
        hidden = {name: min(1.0, max(0.0, 1 - took / times["panels"])) for name, took in exposed.items()}
        rows.append([
            f"{one['size']:,}", f"`{one['precision']}`", f"{times['one']:.4g}", f"**{times['ours']:.4g}**",
            f"{times['one'] / times['ours']:.2f}", f"{times['torch']:.4g}", f"{times['torch'] / times['ours']:.2f}",
            f"{one['predicted_ms']:.4g}", f"{times['alone']:.4g}", f"{times['pieces']:.4g}", f"{times['panels']:.3g}",
            *(f"{int(100 * hidden[name])}%" for name in ("pieces", "alone")), f"{times['messages']:.4g}",
            f"{one['received_bytes'] / one['formula_bytes']:.2f}",
        ])  # fmt: skip
    heading = [
        "extent", "precision", "one GPU, ms", f"{record['ranks']} GPUs, ms", "x one", "torch's DTensor, ms", "x torch",
        "predicted, ms", "share at once, ms", "in pieces, ms", "messages alone, ms", "hidden behind pieces",
        "behind the share", "by NCCL, ms", "bytes / formula",
    ]  # fmt: skip
    when = str(record["environment"].get("time_utc", ""))[:10]
    return (
        f"{markdown_table(heading, rows, ('precision',))}\n\n{record['ranks']} {record['device']['name']} of one host, "
        f"torch {record['torch']}, {when}; medians of {_rounds(record)} rounds, in a new order each, of the slowest "
        "rank. Squares, both operands cut into rows. *Share at once*: a rank multiplies its rows of C with all "
        "operands at hand, by one call. *In pieces*: the same by the products of the distributed call, without its "
        "messages. *Hidden*: the part of the messages' time that is not added to that of the pieces, or of the share "
        "at once. *By NCCL*: panels sent by NCCL, as between hosts, in place of the copy engines. *Bytes / formula*: "
        "the bytes that a rank received, divided by those of `explain_choice`."
    )


def _rounds(record: Mapping[str, Any]) -> str:
    counts = {len(values) for one in record["results"] for values in one["times_ms"].values()}
    return f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(*counts)


def predicted(record: Mapping[str, Any]) -> str:
    """Return a table of predicted times on more GPUs."""
    rows = [
        [
            " x ".join(map(str, one["mesh"])), one["link"], f"{one['size']:,}", f"`{one['precision']}`",
            one["algorithm"],
            f"{one['seconds'] * 1e3:.4g}", f"{one['one_seconds'] / one['seconds']:.4g}",
        ]
        for one in record["predictions"]
    ]  # fmt: skip
    heading = ["GPUs", "slowest link", "extent", "precision", "algorithm", "predicted, ms", "x one GPU"]
    return markdown_table(heading, rows, ("slowest link", "precision", "algorithm"))


def _records() -> list[dict[str, Any]]:
    found = []
    for name in RECORDS:
        path = RESULTS / name
        if path.exists():
            found.append(json.loads(path.read_text(encoding="utf-8")))
            if found[-1].get("schema") != SCHEMA:
                raise ValueError(f"{name}: schema {found[-1].get('schema')!r}, not {SCHEMA}")
    return found


def all_measured() -> str:
    """Return the tables of all records."""
    return "\n\n".join(map(measured, _records())) or NOTHING


def newest_predicted() -> str:
    """Return the predictions of the newest record: those of the model as it is."""
    found = _records()
    return predicted(max(found, key=lambda one: one["environment"]["time_utc"])) if found else NOTHING


BLOCKS: Mapping[str, Callable[[], str]] = {"many-gpus": all_measured, "more-gpus": newest_predicted}
