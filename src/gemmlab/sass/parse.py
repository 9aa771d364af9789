"""Parser for the output of `nvdisasm -g -hex -c` (or `-gi`, or without `-c`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from gemmlab.core.errors import RecordError
from gemmlab.sass.instruction import Control, Instruction, SassFunction, SourceLine
from gemmlab.sass.operands import parse_operand, parse_operands

_HEADER = re.compile(r"\.text\.(\S+):")
_LABEL = re.compile(r"(\S+):")
_SOURCE = re.compile(r'//## File "(.*?)", line (\d+)( inlined at )?')
_LOWER = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(\S.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/\s*")
_UPPER = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*")
_SIZE = re.compile(r"\s*\.size\s+(\S+),\((\.L_\w+) - \1\)")
_ANNOTATION = re.compile(r'\(\*"(?:[A-Z]+_TARGETS ([^"]*))?')
_GUARD = re.compile(r"@(!?U?P[0-9T])\s+")


@lru_cache(maxsize=16)
def parse(text: str) -> Mapping[str, SassFunction]:
    """Return the function of every `.text.NAME` section of the disassembly, by mangled name.

    Recent results are cached: the emulator, an explanation and its pictures parse the same text one after another, and
    threads that launch different kernels parse several texts at once.

    Raises `RecordError` if the text is truncated or is not a disassembly; the message names the malformed line if there
    is one.
    """
    functions = {draft.name: draft.finished() for draft in _drafts(text)}
    if not functions:
        raise RecordError("the disassembly has no .text section: nvdisasm -g -hex -c prints one for each function")
    return MappingProxyType(functions)


@dataclass(frozen=True, slots=True)
class _Line:
    """One instruction of nvdisasm's output. Its operands are not parsed yet."""

    number: int
    """Number of the instruction's first line in the whole text, from 1."""
    text: str
    encoding: int
    source: tuple[SourceLine, ...]
    """Source lines, from the innermost inlined function outwards; empty if no source comment came before."""


@dataclass(slots=True)
class _Draft:
    """A function under construction. Operands are decoded at the end, because instructions also name later labels."""

    name: str
    end_label: str | None
    """Label at the function's end, from its `.size` line; `None` without such a line."""
    printed: list[_Line] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    source: list[SourceLine] = field(default_factory=list)
    chained: bool = False
    """True if the next source comment names the call site at which the last comment's line was inlined."""

    @property
    def end(self) -> int:
        return 16 * len(self.printed)

    def note(self, line: str) -> bool:
        """Record the source comment or the label in a line without an instruction.

        Returns true also for an empty line, a directive and another comment, and false for anything else.
        """
        if match := _SOURCE.search(line):
            self.source = [*(self.source if self.chained else []), (match[1], int(match[2]))]
            self.chained = match[3] is not None
        elif match := _LABEL.fullmatch(line):
            self.labels[match[1]] = self.end
        else:
            return not line.strip() or line.lstrip().startswith((".", "//"))
        return True

    def add(self, number: int, lower: re.Match[str], upper: str) -> None:
        """Add an instruction, which takes two lines; `number` is the number of the first line."""
        half = _UPPER.fullmatch(upper)
        if half is None:
            raise _broken(number + 1, upper, "the upper half of the encoding; the text was cut short")
        if int(lower[1], 16) != self.end:
            raise _broken(number, lower[0], f"the instruction at {self.end:#06x} of {self.name}")
        encoding = int(half[1], 16) << 64 | int(lower[3], 16)
        self.printed.append(_Line(number, lower[2], encoding, tuple(self.source)))
        self.chained = False

    def finished(self) -> SassFunction:
        """Return the parsed function.

        Raises `RecordError` if the text lacks the end label, or a label of the function that an instruction names.
        """
        if self.end_label and self.end_label not in self.labels:
            raise RecordError(
                f"disassembly: {self.name} does not reach its end at {self.end_label}; the text was cut short"
            )
        instructions = tuple(self._decoded(index, line) for index, line in enumerate(self.printed))
        return SassFunction(self.name, instructions, self.labels)

    def _decoded(self, index: int, printed: _Line) -> Instruction:
        annotation = _ANNOTATION.search(printed.text)
        text = printed.text[: annotation.start()].strip() if annotation else printed.text
        guard = _GUARD.match(text)
        name, _, rest = text[guard.end() if guard else 0 :].partition(" ")
        opcode, *modifiers = name.split(".")
        operands = parse_operands(rest, printed.encoding, self.labels)
        targets = annotation[1].split(",") if annotation and annotation[1] else []
        named = [operand.name for operand in operands if operand.kind == "label"]
        for label in [*targets, *(name for name in named if name.startswith(".L_"))]:
            if label not in self.labels:
                raise _broken(
                    printed.number, text, f"a label of {self.name}, not {label}; perhaps the text was cut short"
                )
        return Instruction(
            address=16 * index, opcode=opcode, modifiers=tuple(modifiers),
            predicate=parse_operand(guard[1]) if guard else None,
            operands=operands, control=Control.of(printed.encoding), encoding=printed.encoding,
            line=printed.source[0] if printed.source else None, text=text,
            targets=tuple(self.labels[label] for label in targets), inlined_at=printed.source[1:],
        )  # fmt: skip


def _drafts(text: str) -> Iterator[_Draft]:
    draft: _Draft | None = None
    ends: dict[str, str] = {}
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        header = _HEADER.fullmatch(line)
        if header or line.startswith(("//---", "\t.section")):
            if draft is not None:
                yield draft
            draft = _Draft(header[1], ends.get(header[1]), labels={header[1]: 0}) if header else None
        elif draft is None:
            # The size of a function is printed before its code.
            if size := _SIZE.match(line):
                ends[size[1]] = size[2]
        elif lower := _LOWER.fullmatch(line):
            draft.add(number, lower, next(lines, (0, ""))[1])
        elif not draft.note(line):
            raise _broken(number, line, "an instruction with its encoding (nvdisasm -hex), a label or a directive")
    if draft is not None:
        yield draft


def _broken(number: int, line: str, wanted: str) -> RecordError:
    return RecordError(f"disassembly, line {number}: expected {wanted}, found {line.strip()[:80]!r}")
