"""The status board: what every child last said of itself, in shared memory that outlives its death.

Anonymous shared memory made before the first fork. A slot is a header of 16 words and one cache line for every runner; pages
that are never written cost nothing, so a generous number of entries is free. All words are 8 bytes, aligned, and stored whole.

Torn reads. Single words cannot be torn. What is wider (the worker id, a running handler) carries a mark: 0 empty, 1 being
written, anything else valid. The writer sets 1, writes, sets a mark never used before; the reader takes the mark before and
after and believes only what lay between two equal ones. A child killed between the two leaves a 1: the handler had not begun,
so the entry counts as empty, which is the truth.
"""

import mmap
import struct
import time
from enum import IntEnum

import msgspec

from chokaq.store.records import Held

HEADER_WORDS = 16
ENTRY_WORDS = 8
WORD = 8
MIN_RUNNERS = 1_024
"""Entries per slot at least: max_workers can be raised live, the board cannot grow after the forks."""

_STATE, _PULSE, _LAG, _RUNNING, _BUFFERED, _COMPLETED, _MEMORY, _HIGH, _ID_MARK, _ID = range(10)
_AWAY = 13
"""The first word behind the worker id. 1: the store does not answer; a wiped slot says that it does."""
_PATIENT = 14
"""Written by the supervisor alone. 1: the drain that TERM asks for has no hurry."""
_REPLACE = 15
"""1: an operator wants the child replaced."""
_WRITING = 1
_READ_TRIES = 5
_ENTRY = struct.Struct("=qd26s")
_ULID_BYTES = 26


class SlotState(IntEnum):
    """How far a child has come."""

    FREE = 0
    BOOTING = 1
    READY = 2
    DRAINING = 3


class Running(msgspec.Struct, frozen=True, gc=False):
    """A handler at work."""

    job: Held
    hard_deadline: float
    """time.monotonic() seconds; inf for none."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a slot says at one instant."""

    state: SlotState = SlotState.FREE
    worker_id: str | None = None
    pulse_at: float | None = None
    """time.monotonic() seconds of the last pulse; None before the first."""
    loop_lag_ms: int = 0
    running: int = 0
    buffered: int = 0
    completed: int = 0
    memory_kb: int = 0
    reaches_store: bool = True
    """False while the store does not answer this child."""
    asks_replacement: bool = False
    """An operator wants it to end: it goes on until another stands in its place."""
    handlers: tuple[Running, ...] = ()

    def overdue(self, now: float) -> list[Held]:
        """Jobs whose handler is past its hard deadline."""
        return [handler.job for handler in self.handlers if handler.hard_deadline <= now]

    def pulse_age_ms(self, now: float) -> int | None:
        """Age of the last pulse; None when there never was one."""
        return None if self.pulse_at is None else max(0, round((now - self.pulse_at) * 1000))


class BoardSlot:
    """One child's slot, as the child writes it (chokaq.worker.status.StatusSlot). Plain memory stores, no system call."""

    __slots__ = ("_base", "_marks", "_memory", "_runners", "_words")

    def __init__(self, board: "Board", number: int) -> None:
        self._memory = board.memory
        self._words = board.words
        self._base = board.base(number)
        self._runners = board.runners
        self._marks = _WRITING

    @property
    def runners(self) -> int:
        """Entries for handlers in this slot."""
        return self._runners

    def identify(self, worker_id: str) -> None:
        """Write the worker id of this incarnation."""
        words, base = self._words, self._base
        raw = worker_id.encode("ascii")
        if len(raw) != _ULID_BYTES:
            raise ValueError(f"a worker id has {_ULID_BYTES} characters, not {len(raw)}: {worker_id!r}")
        words[base + _ID_MARK] = _WRITING
        start = (base + _ID) * WORD
        self._memory[start : start + _ULID_BYTES] = raw
        self._marks += 1
        words[base + _ID_MARK] = self._marks

    def progress(self) -> None:
        """Tell that a step of the boot is done; counts as a pulse."""
        self._words[self._base + _PULSE] = time.monotonic_ns()

    def ready(self) -> None:
        """Tell that the child claims from now on; counts as a pulse."""
        self._words[self._base + _PULSE] = time.monotonic_ns()
        self._words[self._base + _STATE] = SlotState.READY

    def reaches_store(self, reachable: bool) -> None:
        """Tell whether the store answers this child."""
        self._words[self._base + _AWAY] = not reachable

    def in_a_hurry(self) -> bool:
        """False when the drain that was asked for may take as long as the handlers do."""
        return not self._words[self._base + _PATIENT]

    def draining(self) -> None:
        """Tell that the child claims no more."""
        self._words[self._base + _STATE] = SlotState.DRAINING

    def ask_replacement(self) -> None:
        """Tell that an operator wants this child to end."""
        self._words[self._base + _REPLACE] = 1

    def pulse(self, *, loop_lag_ms: int, running: int, buffered: int, completed: int, memory_kb: int) -> None:
        """Write the figures, then stamp the time: a fresh stamp never stands over figures older than the one before."""
        words, base = self._words, self._base
        words[base + _LAG] = max(0, loop_lag_ms)
        words[base + _RUNNING] = running
        words[base + _BUFFERED] = buffered
        words[base + _COMPLETED] = completed
        words[base + _MEMORY] = max(0, memory_kb)
        words[base + _PULSE] = time.monotonic_ns()

    def begin(self, runner: int, job: Held, hard_deadline: float) -> None:
        """A handler starts. A runner beyond the board's entries is not recorded: the hard limit cannot see it."""
        if runner >= self._runners:
            return
        words, base = self._words, self._base
        entry = base + HEADER_WORDS + runner * ENTRY_WORDS
        words[entry] = _WRITING
        _ENTRY.pack_into(self._memory, (entry + 1) * WORD, job.lease, hard_deadline, job.id.encode("ascii"))
        if words[base + _HIGH] <= runner:
            words[base + _HIGH] = runner + 1
        self._marks += 1
        words[entry] = self._marks

    def end(self, runner: int) -> None:
        """The handler has ended."""
        if runner < self._runners:
            self._words[self._base + HEADER_WORDS + runner * ENTRY_WORDS] = 0


class Board:
    """The whole board, as the supervisor holds it. Create it before the first fork."""

    def __init__(self, slots: int, runners: int = MIN_RUNNERS) -> None:
        self.slots = slots
        self.runners = runners
        self._slot_words = HEADER_WORDS + runners * ENTRY_WORDS
        # One header more: its first word says whether the whole program is ready, for processes that answer probes.
        self.memory = mmap.mmap(-1, (slots * self._slot_words + HEADER_WORDS) * WORD)
        self._view = memoryview(self.memory)
        self.words = self._view.cast("Q")
        self._free = list(range(slots - 1, -1, -1))

    @property
    def ready(self) -> bool:
        """True when every queue had a live child that reached the store, at the supervisor's last look."""
        return bool(self.words[self.slots * self._slot_words])

    def set_ready(self, ready: bool) -> None:
        """Written by the supervisor only."""
        self.words[self.slots * self._slot_words] = int(ready)

    def base(self, number: int) -> int:
        """Index of a slot's first word."""
        if not 0 <= number < self.slots:
            raise IndexError(f"the board has {self.slots} slots, there is no slot {number}")
        return number * self._slot_words

    def take(self) -> int | None:
        """Reserve a slot for a child about to be forked, wiped and booting; None when all are taken."""
        if not self._free:
            return None
        number = self._free.pop()
        base = self.base(number)
        for runner in range(min(self.runners, self.words[base + _HIGH])):
            self.words[base + HEADER_WORDS + runner * ENTRY_WORDS] = 0
        for word in range(HEADER_WORDS):
            self.words[base + word] = 0
        self.words[base + _STATE] = SlotState.BOOTING
        return number

    def give_back(self, number: int) -> None:
        """Free the slot of a child that has been reaped."""
        self.words[self.base(number) + _STATE] = SlotState.FREE
        self._free.append(number)

    def slot(self, number: int) -> BoardSlot:
        """The writer's side of a slot, for the child."""
        return BoardSlot(self, number)

    def read(self, number: int) -> Snapshot:
        """Everything a slot says now."""
        base = self.base(number)
        header = self.words[base : base + _ID_MARK].tolist()
        return Snapshot(
            state=SlotState(header[_STATE]),
            worker_id=self._read_worker_id(base),
            pulse_at=header[_PULSE] / 1e9 if header[_PULSE] else None,
            loop_lag_ms=header[_LAG],
            running=header[_RUNNING],
            buffered=header[_BUFFERED],
            completed=header[_COMPLETED],
            memory_kb=header[_MEMORY],
            reaches_store=self.reaches_store(number),
            asks_replacement=bool(self.words[base + _REPLACE]),
            handlers=self._read_handlers(base, min(self.runners, header[_HIGH])),
        )

    def reaches_store(self, number: int) -> bool:
        """False while the store does not answer the child of that slot."""
        return not self.words[self.base(number) + _AWAY]

    def set_patient(self, number: int, patient: bool) -> None:
        """Tell the child of that slot whether its drain has no hurry; written before its TERM."""
        self.words[self.base(number) + _PATIENT] = int(patient)

    def close(self) -> None:
        """Unmap; for tests, the program keeps it to its end."""
        self.words.release()
        self._view.release()
        self.memory.close()

    def _read_worker_id(self, base: int) -> str | None:
        start = (base + _ID) * WORD
        for _ in range(_READ_TRIES):
            mark = self.words[base + _ID_MARK]
            raw = self.memory[start : start + _ULID_BYTES]
            if mark > _WRITING and self.words[base + _ID_MARK] == mark:
                return raw.decode("ascii")
        return None

    def _read_handlers(self, base: int, high: int) -> tuple[Running, ...]:
        first = base + HEADER_WORDS
        marks = self.words[first : first + high * ENTRY_WORDS : ENTRY_WORDS].tolist()
        found = [
            self._read_handler(first + runner * ENTRY_WORDS) for runner, mark in enumerate(marks) if mark > _WRITING
        ]
        return tuple(handler for handler in found if handler is not None)

    def _read_handler(self, entry: int) -> Running | None:
        # An entry that changes under every try belongs to a runner that begins and ends handlers faster than we read:
        # nothing there can be past a limit.
        for _ in range(_READ_TRIES):
            mark = self.words[entry]
            if mark <= _WRITING:
                return None
            lease, deadline, raw = _ENTRY.unpack_from(self.memory, (entry + 1) * WORD)
            if self.words[entry] == mark:
                return Running(Held(raw.decode("ascii"), lease), deadline)
        return None
