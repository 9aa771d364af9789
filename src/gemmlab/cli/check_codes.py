"""`gemmlab check FILE.cubin`: check the control codes and registers of the functions of a cubin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gemmlab.cli.answer import print_json
from gemmlab.core.errors import UsageError
from gemmlab.core.words import counted

if TYPE_CHECKING:
    from gemmlab.sass.instruction import Instruction

_SUFFIX = ".cubin"
_SHOWN = 20


def is_machine_code(names: Sequence[str]) -> bool:
    """Return whether the names are those of cubins. Raises `UsageError` if only some of them are."""
    cubins = [name.endswith(_SUFFIX) for name in names]
    if any(cubins) and not all(cubins):
        raise UsageError("cubins are checked by themselves: name no kernels with them")
    return any(cubins)


def check_codes(names: Sequence[str], *, as_json: bool) -> None:
    """Check each cubin and print the faults of its functions.

    Exit with 1 if there is a fault, else with 2 if a function could not be checked, else return.
    """
    answers = [answer for name in names for answer in _of_file(name)]
    if as_json:
        print_json(answers)
    else:
        for answer in answers:
            _show(answer)
    if any(answer["findings"] for answer in answers):
        raise typer.Exit(1)
    if any(answer["refused"] for answer in answers):
        raise typer.Exit(2)


def _of_file(name: str) -> list[dict[str, Any]]:
    from gemmlab.sass.checking.control_codes import check_function, unjudged, without_codes
    from gemmlab.sass.checking.register_room import excess, odd_descriptors
    from gemmlab.sass.parse import parse
    from gemmlab.sass.register_accesses import ASYNCHRONOUS, UnknownAccessError
    from gemmlab.toolchain.cubin import read_cubin
    from gemmlab.toolchain.disassembly import text_of

    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}") from error
    cubin = read_cubin(data, name)
    arch = cubin.arch
    found = []
    for function in parse(text_of(data, name)).values():
        answer: dict[str, Any] = {
            "file": name, "arch": arch, "function": function.name, "instructions": len(function.instructions),
            "findings": [], "closer_than_recorded": [], "not_judged": [], "asynchronous": [], "refused": "",
        }  # fmt: skip
        found.append(answer)
        if without_codes(function):
            answer["refused"] = "no instruction states a stall or a barrier, as in code for a debugger (--device-debug)"
            continue
        try:
            beyond = excess(function, arch, cubin.functions[function.name].registers, partly=True)
            if beyond is not None:
                register = f"R{beyond.register}"
                answer["findings"].append(_of_registers("no room", beyond.instruction, register, beyond.reason))
            reason = "a descriptor begins at an even uniform register; a GPU says 'illegal instruction'"
            for one in odd_descriptors(function):
                answer["findings"].append(_of_registers("odd descriptor", one, "the memory descriptor", reason))
            for finding in check_function(function, arch, partly=True):
                answer["findings" if finding.certain else "closer_than_recorded"].append({
                    "fault": finding.fault, "address": finding.consumer.address, "instruction": finding.consumer.text,
                    "producer_address": finding.producer.address, "producer": finding.producer.text,
                    "register": finding.register, "reason": finding.reason,
                })  # fmt: skip
            answer["not_judged"] = unjudged(function, arch)
            opcodes = {instruction.opcode for instruction in function.instructions}
            answer["asynchronous"] = sorted(opcodes & ASYNCHRONOUS)
        except UnknownAccessError as error:
            answer["refused"] = str(error)
    return found


def _of_registers(fault: str, at: Instruction, register: str, reason: str) -> dict[str, Any]:
    """Return a finding about an instruction's registers, which no other instruction takes part in."""
    return {"fault": fault, "address": at.address, "instruction": at.text, "producer_address": None, "producer": "",
            "register": register, "reason": reason}  # fmt: skip


def _show(answer: dict[str, Any]) -> None:
    findings = answer["findings"]
    where = (
        f"{answer['file']}: {answer['function']} ({answer['arch']}, {counted(answer['instructions'], 'instruction')})"
    )
    if answer["refused"]:
        typer.echo(f"{where}: not checked: {answer['refused']}")
        return
    of_registers = any(not one["producer"] for one in findings)
    subject = "control codes" + (" and registers" if of_registers else "")
    typer.echo(f"{where}: {counted(len(findings), 'fault') if findings else 'no fault'} in the {subject}")
    if answer["not_judged"]:
        typer.echo(f"  not checked, because their latencies are not recorded: {', '.join(answer['not_judged'])}")
    if answer["asynchronous"]:
        names = ", ".join(answer["asynchronous"])
        typer.echo(f"  asynchronous, so that only their stalls and waits are checked: {names}")
    for finding in findings[:_SHOWN]:
        result = finding["register"]
        if finding["producer"]:
            result += f" of {finding['producer_address']:#06x} {finding['producer']}"
        typer.echo(f"  {finding['address']:#06x}  {finding['instruction']}")
        typer.echo(f"    {finding['fault']}: {result}\n    {finding['reason']}")
    if len(findings) > _SHOWN:
        typer.echo(f"  and {len(findings) - _SHOWN} more (--json has all)")
    if closer := answer["closer_than_recorded"]:
        first = f"{closer[0]['address']:#06x} {closer[0]['instruction']}: {closer[0]['reason']}"
        typer.echo(
            f"  {counted(len(closer), 'pair')} closer than the recorded latencies, which a compiler may know to be "
            f"right (--json lists them), such as {first}"
        )
