"""Launches of products on one GPU, ready for other addresses and scalars."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemmlab.devices.cuda_code import WordsLaunch
from gemmlab.dispatch.batches import Step
from gemmlab.dispatch.scratch import Needs, Scratch
from gemmlab.kernels.kernel import Kernel

_IN_TURN = threading.Lock()


@dataclass(frozen=True, slots=True)
class Plan:
    """The launches of a product of one shape, ready for other addresses and scalars (but see `free`)."""

    kernel: Kernel
    config: Mapping[str, int]
    launch: WordsLaunch
    at: tuple[int, int, int]
    """Positions of the addresses of a, b and c among the words of all arguments."""
    scalars_at: tuple[int, int]
    """Positions of alpha and beta among the arguments."""
    needs: Needs | None = None
    """Scratch memory of the launches; `None` for a kernel that needs none."""
    scratch_at: tuple[int, ...] = ()
    """Positions of the addresses of workspace and tickets among the words; of the workspace alone for a kernel without
    tickets, of none for a kernel without both.
    """
    following: tuple[WordsLaunch, ...] = ()
    """Further launches, which read the data that `launch` wrote to the workspace. `at` and the other positions are
    those of its arguments too.
    """

    mask: int = 0
    """The bits that must be 0 in operands' addresses; 0 if the alignment of a float is enough."""
    further: tuple[tuple[int, int, int], ...] = ()
    """Other words that hold addresses, as (0 to 2 for a, b or c, position, bytes from that address)."""
    any_alignment: bool = True
    """False if operands that begin on 16 bytes get another kernel or configuration, and so another plan."""

    @property
    def free(self) -> bool:
        """True if the plan serves any scalars, and any addresses in which the bits of `mask` are 0."""
        return self.any_alignment and not any({"alpha", "beta"} & one.that.names for one in self.kernel.restrictions)

    def enqueue(
        self, stream: int, alpha: float, beta: float, a: int, b: int, c: int, steps: tuple[Step, ...],
        scratch: Scratch | None = None,
    ) -> None:  # fmt: skip
        """Queue the launches on a stream of the current context, once for each of `steps`.

        `steps` has the byte offsets of each product from the addresses `a`, `b` and `c`. A plan with `needs` gets
        scratch memory, which all steps share and which is given back here.
        """
        if self.following:
            self._enqueue_in_turn(stream, alpha, beta, a, b, c, steps, scratch)
            return
        launch, at_alpha, at_beta = self.launch, *self.scalars_at
        at_a, at_b, at_c = self.at
        block = launch.take()
        words, floats = block.words, block.floats
        floats[2 * at_alpha], floats[2 * at_beta] = alpha, beta
        if scratch is not None:
            for at, address in zip(self.scratch_at, (scratch.workspace, scratch.tickets), strict=False):
                words[at] = address
        try:
            for to_a, to_b, to_c in steps:
                words[at_a], words[at_b], words[at_c] = a + to_a, b + to_b, c + to_c
                for which, at, offset in self.further:
                    words[at] = words[self.at[which]] + offset
                launch.enqueue(stream, block)
        finally:
            if scratch is not None:
                scratch.give_back()
            launch.give(block)

    def _enqueue_in_turn(
        self, stream: int, alpha: float, beta: float, a: int, b: int, c: int, steps: tuple[Step, ...],
        scratch: Scratch | None,
    ) -> None:  # fmt: skip
        """Queue all launches of each product before those of the next.

        Calls of several launches share tickets of a stream, so launches of other such calls must not come between: a
        lock keeps them off.
        """
        launches = (self.launch, *self.following)
        blocks = [launch.take() for launch in launches]
        for block in blocks:
            words, floats = block.words, block.floats
            floats[2 * self.scalars_at[0]], floats[2 * self.scalars_at[1]] = alpha, beta
            if scratch is not None:
                for at, address in zip(self.scratch_at, (scratch.workspace, scratch.tickets), strict=False):
                    words[at] = address
        shared = None if scratch is None else scratch.shared
        try:
            with _IN_TURN:
                if shared is not None:
                    shared.begin(stream)
                for starts in steps:
                    for launch, block in zip(launches, blocks, strict=True):
                        for at, address, start in zip(self.at, (a, b, c), starts, strict=True):
                            block.words[at] = address + start
                        for which, at, offset in self.further:
                            block.words[at] = block.words[self.at[which]] + offset
                        launch.enqueue(stream, block)
                if shared is not None:
                    shared.end()
        finally:
            if scratch is not None:
                scratch.give_back()
            for launch, block in zip(launches, blocks, strict=True):
                launch.give(block)


@dataclass(frozen=True, slots=True)
class SeveralPlans:
    """Plans that together make one product, region by region, or one batch that is too large for one grid.

    `needs`, `free` and `mask` are as in `Plan`; the plans share their scratch memory.
    """

    plans: tuple[tuple[Plan, tuple[Step, ...]], ...]
    """(plan, starts of its launches); a start has the byte offsets of a, b and c from those of the first product."""
    needs: Needs | None = None
    free: bool = True
    mask: int = 0

    def enqueue(
        self, stream: int, alpha: float, beta: float, a: int, b: int, c: int, steps: tuple[Step, ...],
        scratch: Scratch | None = None,
    ) -> None:  # fmt: skip
        """Queue all launches on a stream of the current context, once for each of `steps`; otherwise as in `Plan`."""
        loan = None if scratch is None else scratch.loan()
        try:
            for to_a, to_b, to_c in steps:
                for plan, starts in self.plans:
                    plan.enqueue(stream, alpha, beta, a + to_a, b + to_b, c + to_c, starts, loan)
        finally:
            if scratch is not None:
                scratch.give_back()


AnyPlan = Plan | SeveralPlans


def together(plans: Sequence[tuple[Plan, tuple[Step, ...]]]) -> AnyPlan:
    """Return one plan that runs all of `plans`; they share scratch memory that is large enough for each of them."""
    needs = [plan.needs for plan, _ in plans if plan.needs is not None]
    return SeveralPlans(
        tuple(plans), free=all(plan.free for plan, _ in plans), mask=max(plan.mask for plan, _ in plans),
        needs=Needs(*(max(values) for values in zip(*needs, strict=True))) if needs else None,
    )  # fmt: skip
