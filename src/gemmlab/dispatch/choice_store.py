"""Choices measured on this machine: stored by `gemmlab tune --library`, read once per process.

The file is JSON in the user's data folder. An entry names the fastest kernel and configuration for one product on one
machine, or the configuration of a processor's kernel. An entry is valid as long as the kernel's source is unchanged. If
the file or an entry is invalid, the shipped choice is used, after one warning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gemmlab.core.data_folder import data_dir
from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.warning import warn_caller
from gemmlab.kernels.catalog import SOURCE_SUFFIXES, find_kernel
from gemmlab.kernels.digest import source_digest
from gemmlab.kernels.kernel import Kernel

SCHEMA = "gemmlab.choices-of-machines/1"
FILE_NAME = "choices.json"
SWITCH = "GEMMLAB_TUNED"
"""The environment variable that turns stored choices off with the value 0."""
EVERY = ""
"""`Entry.product` of an entry for all products: the configuration of a processor's kernel."""
_ANEW = "delete the file, and `gemmlab tune --library` measures anew"
MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Entry:
    """The fastest kernel and configuration for one product on one machine."""

    machine: str
    """Name of the machine, from `machine_of_gpu` or `machine_of_cpu`."""
    op: str
    product: str
    """`measurements.time_key` of the product; `EVERY` for all."""
    precision: str
    """The precision that the caller requests."""
    kernel: str
    config: Mapping[str, int]
    us: float
    """Time in microseconds; for `EVERY` the geometric mean over the measured products."""
    shipped_us: float
    """Microseconds of the shipped choice, as in `us`."""
    digest: str
    """`source_digest` of the kernel that was measured."""
    taken: str
    """The time of the measurement, UTC, as ISO 8601 writes it."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """(machine, operation, product, precision); a store has one entry for each key."""
        return self.machine, self.op, self.product, self.precision


def machine_of_gpu(name: str, driver: str) -> str:
    """Return the name of a machine with this GPU model and this version of the driver."""
    return f"gpu: {name}, driver {driver}"


def machine_of_cpu() -> str:
    """Return the name of this processor as a machine: its model, number of cores, and bytes of L1 and L2 cache."""
    from gemmlab.core.hardware import cpu_info

    info = cpu_info()
    kind = f"{info.vendor} {info.family}-{info.model}-{info.stepping}"
    return f"cpu: {info.name} ({kind}), {info.physical_cores} cores, L1 {info.l1d_bytes}, L2 {info.l2_bytes}"


def store_path() -> Path | None:
    """Return the path of this user's file of stored choices, which need not exist; `None` for a user without a home."""
    folder = data_dir()
    return None if folder is None else folder / FILE_NAME


def to_json(entries: Mapping[tuple[str, ...], Entry]) -> dict[str, Any]:
    """Return a store as JSON values, `schema` first."""
    return {"schema": SCHEMA, "entries": [asdict(entries[key]) for key in sorted(entries)]}


def from_json(data: object, where: object) -> dict[tuple[str, ...], Entry]:
    """Return the entries that `to_json` wrote as `data`, by `Entry.key`. Fields added by later versions are ignored.

    Raises `RecordError` for other data; the message begins with `where`.
    """
    try:
        if not isinstance(data, dict) or not str(data["schema"]).startswith(SCHEMA.partition("/")[0] + "/"):
            raise RecordError(f"{where} is no store of choices: it has no schema {SCHEMA}")
        if data["schema"] != SCHEMA:
            raise RecordError(
                f"{where}: another version of gemmlab wrote it, with schema {data['schema']}; this one reads {SCHEMA}"
            )
        entries = [_entry(values) for values in data["entries"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(f"{where} is no store of choices: {type(error).__name__}: {error}") from error
    return {entry.key: entry for entry in entries}


def read_store(path: Path) -> dict[tuple[str, ...], Entry]:
    """Return the entries of the store at a path, by `Entry.key`; none if there is no file.

    Raises `RecordError` if the file cannot be read, is larger than `MOST_BYTES` or is no store, and if another user may
    have written it.
    """
    from gemmlab.toolchain import private_files

    try:
        data = private_files.read(path)
    except FileNotFoundError:
        return {}
    except private_files.UntrustedError as error:
        raise RecordError(str(error)) from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > MOST_BYTES:
        raise RecordError(f"{path}: larger than {MOST_BYTES >> 20} MiB")
    try:
        return from_json(json.loads(data), path)
    except RecordError as error:
        raise RecordError(f"{error}; {_ANEW}") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} is not JSON: {error}; {_ANEW}") from error


def objection(entry: Entry, known: Kernel | None = None) -> str:
    """Return the reason that an entry cannot be used: another source, or an unknown or unsuitable kernel or
    configuration.

    The reason is `""` if the entry can be used. If `known` is the entry's kernel, the catalog is not searched.
    """
    if entry.kernel.endswith(SOURCE_SUFFIXES):
        return f"{entry.kernel} is a file; only kernels of gemmlab can be stored choices"
    try:
        kernel = known if known is not None and known.id == entry.kernel else find_kernel(entry.kernel)
        kernel.configure(entry.config)
    except UsageError as error:
        return str(error)
    if kernel.op != entry.op:
        return f"{kernel.id} is a kernel for {kernel.op}, not for {entry.op}"
    return "" if source_digest(kernel) == entry.digest else f"the source of {kernel.id} has changed since {entry.taken}"


def stored_choice(machine: str, product: str, precision: str, known: Kernel | None = None) -> Entry | None:
    """Return the entry of `gemm` for a product on a machine; `None` if there is none, or none that can be used.

    `product` and `precision` are as in `Entry`, and `known` as in `objection`. A warning names the first
    entry in a process that cannot be used.
    """
    entry = _of_machine(machine).get((product, precision))
    if entry is None:
        return None
    if entry.key not in _objections:
        _objections[entry.key] = objection(entry, known)
        if why := _objections[entry.key]:
            _warn_stale(why)
    return None if _objections[entry.key] else entry


_objections: dict[tuple[str, ...], str] = {}


@cache
def _entries() -> Mapping[tuple[str, ...], Entry]:
    """Return all entries, read once: choices do not change while a process runs.

    The result is empty if `SWITCH` turns stored choices off, without a file, and, after a warning, for an invalid one.
    """
    path = None if os.environ.get(SWITCH) == "0" else store_path()
    if path is None:
        return {}
    try:
        return read_store(path)
    except RecordError as error:
        _warn(f"{error}; the shipped choices are used")
        return {}


@cache
def _of_machine(machine: str) -> Mapping[tuple[str, str], Entry]:
    mine = (entry for entry in _entries().values() if (entry.machine, entry.op) == (machine, "gemm"))
    return {(entry.product, entry.precision): entry for entry in mine}


def _warn_stale(why: str) -> None:
    """Warn of the first stale entry in a process, and of no further ones."""
    if sum(map(bool, _objections.values())) == 1:
        _warn(f"{why}: the shipped choice is used; `gemmlab tune --library` measures again")


@cache
def _warn(message: str) -> None:
    warn_caller(message)


def _entry(values: Mapping[str, Any]) -> Entry:
    config = {str(name): int(value) for name, value in values["config"].items()}
    us, shipped_us = float(values["us"]), float(values["shipped_us"])
    if not (0 < us < float("inf") and 0 < shipped_us < float("inf")):
        raise ValueError(f"times of {us} and {shipped_us} us are not both positive")
    return Entry(
        machine=str(values["machine"]), op=str(values["op"]), product=str(values["product"]),
        precision=str(values["precision"]), kernel=str(values["kernel"]), config=config, us=us, shipped_us=shipped_us,
        digest=str(values["digest"]), taken=str(values["taken"]),
    )  # fmt: skip
