"""Map from opcodes to the pipes of a streaming multiprocessor that execute them, under Nsight Compute's names.

Source: the pipelines in the kernel profiling guide of Nsight Compute. The guide names kinds of instructions but few
opcodes. Conversions, votes and reductions between lanes are therefore assigned by kind, without measurement. On chips
without a separate half-precision pipe (compute capability 8.6 and later), the opcodes under `fp16` run on `fma`.
"""

from __future__ import annotations

from typing import Literal

from gemmlab.sass.instruction import Instruction

Pipe = Literal[
    "fma", "fmaheavy", "alu", "fp16", "fp64", "xu", "lsu", "tex", "tensor", "tma", "uniform", "adu", "cbu", "none"
]
_OPCODES: dict[Pipe, str] = {
    "fma": "FADD FMUL FFMA FADD2 FMUL2 FFMA2 FSWZADD",
    # Only the heavy half of the FMA pipe can multiply integers.
    "fmaheavy": "IMAD IMUL IDP",
    "alu": "IADD IADD3 ISCADD LEA LOP LOP3 PLOP3 SHF SHL SHR PRMT MOV SEL SGXT BMSK IABS IMNMX VIMNMX VIMNMX3 VIADD "
    "VIADDMNMX VABSDIFF VABSDIFF4 VHMNMX ISETP PSETP ISET FSETP FSET FSEL FMNMX FMNMX3 FCHK HMNMX2 F2FP I2FP I2I I2IP "
    "F2IP P2R R2P CS2R VOTE REDUX CREDUX MOVM",
    "fp16": "HADD2 HMUL2 HFMA2 HSET2 HSETP2",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "xu": "MUFU F2F F2I I2F FRND POPC FLO BREV",
    "lsu": "LD LDG LDS LDL LDSM ST STG STS STL STSM STAS ATOM ATOMG ATOMS RED REDG REDAS LDGSTS LDGDEPBAR ARRIVES CCTL "
    "CCTLL CCTLT MEMBAR ERRBAR CGAERRBAR FENCE QSPC SHFL MATCH S2R SYNCS PMTRIG",
    "tex": "TEX TLD TLD4 TMML TXD TXQ SULD SUST SUATOM SURED SUQUERY FOOTPRINT",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA BGMMA QGMMA LDTM STTM LDT STT UTCHMMA UTCIMMA UTCQMMA UTCOMMA "
    "UTCMXQMMA UTCBAR UTCCP UTCSHIFT UTCATOMSWS",
    "tma": "UBLKCP UBLKRED UBLKPF UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL UTMACMDFLUSH",
    "uniform": "R2UR S2UR CS2UR LDCU VOTEU",
    "adu": "LDC BAR B2R R2B UCGABAR_ARV UCGABAR_WAIT",
    "cbu": "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT KILL BSSY BSYNC BREAK BMOV WARPSYNC ENDCOLLECTIVE YIELD NANOSLEEP "
    "BPT RPCMOV LEPC GETLMEMBASE SETLMEMBASE RTT DEPBAR WARPGROUP WARPGROUPSET USETMAXREG ELECT ACQBULK ACQSHMINIT "
    "PREEXIT",
    "none": "NOP",
}
_PIPES: dict[str, Pipe] = {opcode: pipe for pipe, opcodes in _OPCODES.items() for opcode in opcodes.split()}


def pipe(instruction: Instruction) -> Pipe:
    """Return the pipe that executes an instruction. An unknown opcode is `uniform` if it begins with U, else `none`."""
    return pipe_of(instruction.opcode)


def pipe_of(opcode: str) -> Pipe:
    """Return the pipe that executes an opcode, given without modifiers. Unknown opcodes are as in `pipe`."""
    return _PIPES.get(opcode) or ("uniform" if opcode.startswith("U") else "none")
