"""Source lines of each instruction: its line in the innermost inlined function, then the line of each call outwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath

from gemmlab.core.errors import RecordError, UsageError
from gemmlab.core.hazard import Hazard
from gemmlab.core.hazard_source import is_inline_ptx, line_text
from gemmlab.core.program import Artifact
from gemmlab.sass.gmma_lines import gmma_lines
from gemmlab.sass.instruction import Instruction, SassFunction, SourceLine
from gemmlab.sass.parse import parse
from gemmlab.toolchain.line_tables import FunctionLines, read_line_tables
from gemmlab.toolchain.ptx_places import ptx_places


def source_places(function: SassFunction, lines: FunctionLines, ptx: str) -> dict[int, tuple[SourceLine, ...]]:
    """Return (file, line) of each instruction and of the calls around it, innermost first, by instruction address.

    `lines` are the function's line tables, and `ptx` is the text from which it was compiled. An instruction without
    known lines has an empty tuple.
    """
    names, named, multiplications = _names(function, lines), ptx_places(ptx), gmma_lines(function, ptx)
    found = {i.address: _places(i, lines, names, named) for i in function.instructions}
    for address, at in multiplications.items():
        if places := named[at - 1]:
            found[address] = tuple((names.get(file, file), line) for file, line in places)
    return found


def call_sites(artifact: Artifact, function: SassFunction) -> dict[int, str]:
    """Return, by address, the lines of the kernel's own file whose calls brought each inlined instruction there.

    A value is `"mine.cu:12"`, or `"mine.cu:12, from mine.cu:40"` for nested calls, the innermost first. Instructions
    that were not inlined have no entry. Raises `UsageError` if the cubin's line information is malformed.
    """
    return {address: call_site(chain) for address, chain in _inlined(artifact, function).items()}


def _inlined(artifact: Artifact, function: SassFunction) -> dict[int, tuple[SourceLine, ...]]:
    """Return the (file, line) chain of each instruction that was inlined, innermost first, by address."""
    tables = read_line_tables(artifact.code, artifact.kernel)
    lines = tables.functions.get(function.name, FunctionLines((), ()))
    places = source_places(function, lines, artifact.texts.get("ptx", ""))
    return {address: chain for address, chain in places.items() if len(chain) > 1}


def call_site(chain: Sequence[SourceLine]) -> str:
    """Return the calls in the kernel's own file as text, from the (file, line) chain of an inlined instruction.

    The last file of the chain is the kernel's own. The text has the form that `call_sites` describes.
    """
    own = dict.fromkeys(place for place in chain[1:] if place[0] == chain[-1][0])
    return ", from ".join(f"{PurePath(file).name}:{line}" for file, line in own)


def with_call_sites(
    hazards: Iterable[Hazard], artifact: Artifact, texts: Mapping[str, str] | None = None
) -> Iterator[Hazard]:
    """Yield the hazards with the kernel's lines that call the lines of each hazard and of its mentions.

    The fields are `called_from` and `other_called_from`, and for inline PTX `called_text` and `other_called_text`.
    Their present values stay in a hazard and not in its mentions. Equal mentions become one. Lines of the kernel itself
    need no caller. No caller is known if the artifact has no disassembly or line tables. `texts` has sources by the
    file names in the hazards; any other file is read.
    """
    found = tuple(hazards)
    chains: dict[int, tuple[SourceLine, ...]] = {}
    stated: dict[tuple[SourceLine, str], tuple[SourceLine, ...]] = {}
    if any(hazard.called_from or hazard.other_called_from for hazard in found):
        places = {chain for chain in ptx_places(artifact.texts.get("ptx", "")) if len(chain) > 1}
        stated = {(chain[0], call_site(chain)): chain for chain in places}
    if any(hazard.instruction >= 0 for hazard in found) and "sass" in artifact.texts:
        with suppress(UsageError, RecordError, KeyError):
            chains = _inlined(artifact, parse(artifact.texts["sass"])[artifact.entry])

    def caller(address: int, file: str, line: int, text: str, site: str = "", site_text: str = "") -> tuple[str, str]:
        """Return (calls in the kernel's own file that lead to a line, source text of the innermost of them).

        `site` and `site_text` are what is already known of these. The text is empty unless the line is inline PTX. Both
        are empty if no call leads to the line.
        """
        chain = stated.get(((file, line), site), ()) if site else chains.get(address, ())
        site = site or (_unless(call_site(chain), file, line) if chain else "")
        if site_text or not site or not chain or not is_inline_ptx(text):
            return site, site_text
        own = next(place for place in chain[1:] if place[0] == chain[-1][0])
        return site, line_text(*own, texts)

    for hazard in found:
        called, called_text = caller(
            hazard.instruction, hazard.file, hazard.line, hazard.text, hazard.called_from, hazard.called_text
        )
        other, other_text = caller(
            hazard.other_instruction, hazard.other_file or hazard.file, hazard.other_line, hazard.other_text,
            hazard.other_called_from, hazard.other_called_text,
        )  # fmt: skip
        mentions = []
        for each in hazard.mentions:
            site, site_text = caller(each.instruction, each.file, each.line, each.text)
            mentions.append(replace(each, called_from=site, called_text=site_text))
        yield replace(
            hazard, called_from=called, called_text=called_text, other_called_from=other, other_called_text=other_text,
            mentions=tuple(dict.fromkeys(mentions)),
        )  # fmt: skip


def _unless(site: str, file: str, line: int) -> str:
    """Return a call site; `""` if it equals the hazard's own place, or if the hazard has no line."""
    return "" if not line or site == f"{PurePath(file).name}:{line}" else site


def _names(function: SassFunction, lines: FunctionLines) -> dict[str, str]:
    """Return the real paths of the file names in the cubin's line tables, as far as they are known.

    The disassembly has the real path of each instruction's innermost line. Any other file is assumed to lie beside a
    known file that has the same folder in the line tables.
    """
    found: dict[str, str] = {}
    for i in function.instructions:
        places = lines.places(i.address)
        if i.line is not None and places and places[0][1] == i.line[1]:
            found.setdefault(places[0][0], i.line[0])
    folders = {PurePath(file).parent: PurePath(real).parent for file, real in found.items()
               if PurePath(file).name == PurePath(real).name}  # fmt: skip
    for file in {file for _, chain in lines.source for file, _ in chain if file not in found}:
        if PurePath(file).parent in folders:
            found[file] = str(folders[PurePath(file).parent] / PurePath(file).name)
    return found


def _places(
    instruction: Instruction, lines: FunctionLines, names: Mapping[str, str], named: Sequence[tuple[SourceLine, ...]]
) -> tuple[SourceLine, ...]:
    """Return the chain (file, line) of an instruction, innermost first.

    `named` has the chain of each PTX line. This chain is preferred to the line table's if both have the same innermost
    line. Without line tables, the chain is that of the disassembly.
    """
    places = tuple((names.get(file, file), line) for file, line in lines.places(instruction.address))
    if not places:
        return (instruction.line, *instruction.inlined_at) if instruction.line else ()
    at = lines.ptx_line(instruction.address)
    of_ptx = named[at - 1] if 0 < at <= len(named) else ()
    alike = of_ptx and (PurePath(of_ptx[0][0]).name, of_ptx[0][1]) == (PurePath(places[0][0]).name, places[0][1])
    return tuple((names.get(file, file), line) for file, line in of_ptx) if alike else places
