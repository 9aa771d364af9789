"""The programs of a CUDA kernel's instances: each is a function, or a template with values for its parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from gemmlab.core.architecture import is_only, runs
from gemmlab.core.errors import DeviceError
from gemmlab.core.program import Config, Program
from gemmlab.kernels.cuda_file.device_code import DeviceCode, device_code
from gemmlab.kernels.cuda_file.file_items import macros_of
from gemmlab.kernels.cuda_file.header_facts import Facts
from gemmlab.kernels.cuda_file.signature import Signature, TemplateParameter
from gemmlab.kernels.cuda_file.tokens import pieces
from gemmlab.kernels.names import shown

_GUARD = re.compile(r"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)", re.MULTILINE)
COMMON = Path(__file__).parents[1] / "cuda_common"
"""The folder of headers that the shipped kernels share, and that any kernel may include."""


@dataclass(frozen=True, slots=True)
class Instances:
    """The code of one kernel, and what is needed to name and build its instances."""

    path: Path
    text: str
    arch: str
    signature: Signature
    """The kernel's signature; if the file states an instance, its types replace the template's type parameters."""
    stated: str
    """The instance that the file states, as `sgemm<float, 32>`; empty if names are built from parameters."""
    template: tuple[TemplateParameter, ...]
    """Template parameters that get a value from the configuration or the problem, in order."""
    macros: tuple[str, ...]
    """Parameters of the configuration that are passed as `-DNAME=VALUE`."""
    flags: tuple[str, ...]
    """Template parameters whose value the problem determines."""
    options: tuple[str, ...] = ()
    """Compiler options besides `macros`. If there are any, host code is removed from the text; rungs have none."""
    written_anew: tuple[str, ...] = ()
    """Architectures for which gemmlab rewrites the compiled main loop in the machine code of its package."""

    def entry(self, instance: Config) -> str:
        """Return the name of an instance as an expression of C++, `block_tile<32, 32, 32>`."""
        values = [_literal(parameter, instance.get(parameter.name, 0)) for parameter in self.template]
        # Parameters without a value here have defaults: `tile<>`.
        chosen = f"<{', '.join(values)}>" if self.signature.template else ""
        return self.stated or f"{self.signature.name}{chosen}"

    def program(self, instance: Config, target: str) -> Program:
        """Return the program of one instance for a target; `DeviceError` if the kernel does not run on the target.

        The text is the file's, without host code if there are `options`. A kernel for a single architecture, as sm_90a,
        or for a family, as sm_100f, is built for that name.
        """
        # Features of a single architecture, as of sm_90a, need that target, which runs on all GPUs of the architecture.
        target = self.arch if is_only(self.arch) and runs(self.arch, target) else target
        _check_target(self.path.stem, self.arch, target)
        defines = tuple(f"-D{name}={instance[name]}" for name in self.macros)
        entry = self.entry(instance)
        options = (*self.options, *defines, f"-I{COMMON}")
        code = device_code(self.text, str(self.path), options, entry) if self.options else DeviceCode(self.text)
        return Program(
            kernel=self.path.stem,
            language="cuda",
            target=target,
            entry=entry,
            fingerprint=sha256(repr((self.text, entry, defines, self.options)).encode()).hexdigest(),
            emit=lambda: code.text,
            path=str(self.path),
            options=options,
            headers=code.headers,
            written_anew=target in self.written_anew,
        )


def find_instances(
    path: Path, text: str, facts: Facts, signature: Signature, options: tuple[str, ...] = (),
    headers: Sequence[str] = (),
) -> Instances:  # fmt: skip
    """Return the instances of a kernel; `headers` are the texts that its file includes. Each template parameter gets
    its value from the configuration, from the problem or from its default; or all from the instance that the file
    states.

    `UsageError` names file, line and parameter if one has no value, or if a stated parameter is used nowhere.
    """
    flags = [shown(name) for name in facts.names.flags]
    texts = (text, *headers)
    if "<" in facts.kernel:
        macros = _macros(texts, facts, signature, [])
        return Instances(path, text, facts.arch, _typed(signature, facts), facts.kernel, (), macros, (), options)
    used = _used(facts, signature, flags)
    names = [parameter.name for parameter in used]
    decided = tuple(name for name in names if name in flags and name not in facts.params)
    macros = _macros(texts, facts, signature, names)
    return Instances(path, text, facts.arch, signature, "", tuple(used), macros, decided, options, facts.written_anew)


def _used(facts: Facts, signature: Signature, flags: Sequence[str]) -> list[TemplateParameter]:
    used: list[TemplateParameter] = []
    for index, parameter in enumerate(signature.template):
        if parameter.name in facts.params or parameter.name in flags:
            if len(used) < index:
                before = signature.template[len(used)].name
                raise facts.stated.error(
                    "params", f"template parameter {before} needs a value, as {parameter.name} has"
                )
            used.append(parameter)
        elif parameter.is_type:
            raise facts.stated.error(
                "kernel", f'{parameter.name} of the template is a type; state the instance, "{signature.name}<float>"'
            )
        elif not parameter.default:
            known = ", ".join(facts.params) or "none"
            raise facts.stated.error(
                "params",
                f"template parameter {parameter.name} of {signature.name} is missing (stated: {known}); state the "
                f"instance, as --kernel '{signature.name}<32>', or `params = {{ {parameter.name} = 32 }}`",
            )
    return used


def _macros(texts: Sequence[str], facts: Facts, signature: Signature, used: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters of the configuration that are macros of the file or of its headers, not template parameters
    (`used`): those for which one of `texts` has an `#ifndef`.

    Parameters that only the launch uses are left out; `UsageError` for others without an `#ifndef`.
    """
    others = [name for name in facts.params if name not in used]
    guards = {name for one in texts for name in _GUARD.findall(one)}
    of_launch = {name for expression in (*facts.grid, *facts.threads, facts.smem_bytes) for name in expression.names}
    alone = of_launch.difference(*map(_names_in, texts))
    for name in others:
        if name not in guards | alone:
            template = ", ".join(parameter.name for parameter in signature.template) or "none"
            raise facts.stated.error(
                "params",
                f"{name} is no parameter of {signature.name}'s template (it has {template}), and the file has no "
                f"`#ifndef {name}` that would let it be defined; nor is it the launch's alone",
                name,
            )
    return tuple(name for name in others if name in guards)


def _names_in(text: str) -> set[str]:
    """Return the words of a text that may be compiled, those in the texts of macros included."""
    found = list(pieces(text))
    return {token.text for token in found if not token.is_directive}.union(*macros_of(found).values())


def _typed(signature: Signature, facts: Facts) -> Signature:
    """Return the signature with the argument types of the stated instance: `T*` of `sgemm<float>` is `float*`."""
    if not re.fullmatch(r"[\w:]+<[\w:, ]*>", facts.kernel):
        raise facts.stated.error(
            "kernel", f"{facts.kernel!r} is not an instance of a template, as {signature.name}<float, 32>"
        )
    arguments = [part.strip() for part in facts.kernel.partition("<")[2][:-1].split(",")]
    types = {p.name: value for p, value in zip(signature.template, arguments, strict=False) if p.is_type}
    args = []
    for argument in signature.args:
        base = argument.type.rstrip("*")
        args.append(replace(argument, type=types.get(base, base) + argument.type[len(base) :]))
    return replace(signature, args=tuple(args))


def _literal(parameter: TemplateParameter, value: int) -> str:
    # 1 cannot replace `true` here: the conversion would be narrowing.
    return ("true" if value else "false") if parameter.type == "bool" else str(value)


def _check_target(kernel: str, arch: str, target: str) -> None:
    if runs(arch, target):
        return
    only = is_only(arch)
    todo = (
        f"; `gemmlab compile --arch {arch}` compiles it without a GPU, and "
        f'gemmlab.launch(..., device="cuda", arch="{arch}") runs it on a GPU of that architecture'
    )
    raise DeviceError(f"{kernel} is for {arch}{'' if only else ' or newer'}, not for {target}{todo if only else ''}")
