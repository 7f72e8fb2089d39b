"""The maintenance loop, one turn at a time: orders, releases, keep-alive, retention, and the leader's chores."""

import math
import socket
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from chokaq.config.settings import Settings
from chokaq.lifecycle.states import DeathCause
from chokaq.maintenance.channel import Ack, Notice, encode, receive_orders
from chokaq.maintenance.chores import Chore, leftovers, rescue, retention, roll_up
from chokaq.maintenance.fleet import LeaderWatch
from chokaq.maintenance.leader import Lead
from chokaq.maintenance.link import StoreLink
from chokaq.maintenance.policies import crash_policies
from chokaq.maintenance.release import Releases
from chokaq.maintenance.silent import end_silent
from chokaq.maintenance.tally import MaintenanceTally
from chokaq.store.errors import SchemaMismatch, StoreError, StoreMisconfigured, StoreUnavailable
from chokaq.store.protocol import Session
from chokaq.store.records import DeathNotice, Figures, Registration
from chokaq.worker.status import StatusSlot

log = structlog.get_logger("chokaq")

LONGEST_WAIT = 1.0
"""Seconds between two pulses on the board."""
REFUSED_PAUSE = 1.0
"""Seconds before the next call after one that the store refused."""
DEFAULT_HEARTBEAT = 10.0


@dataclass(slots=True)
class _Timer:
    name: str
    due_at: float
    interval: float


class MaintenanceLoop:
    """Everything the process does, without the process: time comes in, store and channel are given.

    `turn(now)` returns the seconds to wait for the channel, or None at the end. Raises StoreMisconfigured or SchemaMismatch only
    before the first success: after that every error of the store is waited out.
    """

    def __init__(
        self,
        settings: Settings,
        link: StoreLink,
        channel: socket.socket,
        slot: StatusSlot,
        *,
        memory_kb: Callable[[], int] = lambda: 0,
        ring: Callable[[str], None] = lambda _queue: None,
        tally: MaintenanceTally | None = None,
    ) -> None:
        """`ring`: wakes an idle child of a queue on this host; `tally`: what is counted (None: nothing)."""
        self.orphaned = False
        self._settings = settings
        self._link = link
        self._channel = channel
        self._slot = slot
        self._memory_kb = memory_kb
        self._releases = Releases(lambda queue: crash_policies(settings, queue), ring)
        heartbeats = [queue.heartbeat for queue in settings.queues.values()]
        self._heartbeat = max(heartbeats, default=DEFAULT_HEARTBEAT)
        self._lead = Lead(settings.maintenance.rescue_interval, self._heartbeat)
        self._timers = [
            _Timer("lead", 0.0, settings.maintenance.rescue_interval),
            _Timer("roll_up", 0.0, settings.maintenance.rollup_interval),
            _Timer("retention", 0.0, settings.maintenance.retention_interval),
        ]
        self._watch: LeaderWatch | None = None
        if tally is not None:
            self._watch = LeaderWatch(tally)
            self._timers.append(_Timer("fleet", 0.0, settings.metrics.fleet_interval))
        self._chores: list[tuple[str, Chore]] = []
        self._chore_at = 0.0
        self._beat_at = 0.0
        self._retry_at = 0.0
        self._stopping = False
        self._acks: list[int] = []
        self._released = 0
        self._was_ready = False

    def turn(self, now: float) -> float | None:
        """Do what is due; returns how long to wait for the next turn, None when there is nothing left to do."""
        self._slot.pulse(
            loop_lag_ms=0,
            running=len(self._chores),
            buffered=len(self._releases),
            completed=self._released,
            memory_kb=self._memory_kb(),
        )
        self._take_orders()
        if now >= self._retry_at:
            self._work(now)
        self._send_acks()
        if self._stopping and not self._releases and not self._acks:
            self._leave()
            return None
        return self._wait(now)

    def orphan(self) -> None:
        """The supervisor is gone: finish what is here, take on nothing new."""
        self.orphaned = True
        self._stopping = True
        self._acks.clear()

    def _take_orders(self) -> None:
        orders, alive = receive_orders(self._channel)
        for order in orders:
            if isinstance(order, Notice):
                self._releases.add(order)
            else:
                self._stopping = True
        if not alive and not self.orphaned:
            self.orphan()

    def _work(self, now: float) -> None:
        try:
            session, me = self._link.use()
            if not self._was_ready:
                self._was_ready = True
                self._slot.ready()
            self._link_work(session, me, now)
            self._link.worked()
        except StoreUnavailable as error:
            self._interrupted(error, now)
        except (SchemaMismatch, StoreMisconfigured) as error:
            if not self._was_ready:
                raise
            self._interrupted(error, now)
        except StoreError as error:
            # Refused for good: the call is skipped until its timer comes round again. A chore that was refused is over.
            self._retry_at = now + REFUSED_PAUSE
            log.exception("maintenance_refused", error=str(error))

    def _interrupted(self, error: StoreError, now: float) -> None:
        self._chores.clear()
        if self._watch is not None:
            self._watch.leads(None)
        # One that did not get through is due as soon as the store is back.
        self._beat_at = now
        self._retry_at = now + self._link.broke(error)

    def _link_work(self, session: Session, me: Registration, now: float) -> None:
        if self._releases.due(now):
            number = self._releases.step(session, me, now)
            if number is not None:
                self._acks.append(number)
                self._released += 1
            return
        if self._stopping:
            return
        if now >= self._beat_at:
            # First, since a refused one must not come back before everything else does.
            self._beat_at = now + self._heartbeat
            session.keep_alive(me, [], Figures(memory_kb=self._memory_kb()))
        for timer in self._timers:
            if now >= timer.due_at:
                timer.due_at = now + timer.interval
                self._begin(timer, session, me, now)
        if self._chores and now >= self._chore_at:
            self._step_chore(now)

    def _begin(self, timer: _Timer, session: Session, me: Registration, now: float) -> None:
        if timer.name == "lead":
            timer.due_at = now + self._lead.take(session, me, now, self._link.breaks)
            if self._watch is not None:
                self._watch.leads(self._lead.answer)
                if self._lead.leading:
                    self._start("operators", self._watch.operators.look(session))
            if self._lead.may_judge(now):
                self._start("rescue", rescue(session, me, self._settings))
                self._start("silent_workers", end_silent(session, me, self._settings))
        elif timer.name == "fleet":
            if self._watch is not None and self._watch.fleet.leading:
                self._start("fleet", self._watch.fleet.look(session))
        elif timer.name == "retention":
            self._start("retention", retention(session, self._settings, frozenset(self._settings.queues)))
            if self._lead.leading:
                self._start("leftovers", leftovers(session, self._settings))
        elif self._lead.leading:
            self._start("roll_up", roll_up(session))

    def _start(self, name: str, chore: Chore) -> None:
        # One that is still at work (a long purge) goes on; a second would do the same.
        if all(running != name for running, _ in self._chores):
            self._chores.append((name, chore))

    def _step_chore(self, now: float) -> None:
        name, chore = self._chores.pop(0)
        try:
            pause = next(chore)
        except StopIteration:
            return
        # To the back of the line: a long purge takes turns with the rescue.
        self._chores.append((name, chore))
        self._chore_at = now + (pause if len(self._chores) == 1 else 0.0)

    def _send_acks(self) -> None:
        if self.orphaned:
            self._acks.clear()
        while self._acks:
            try:
                self._channel.send(encode(Ack(self._acks[0])))
            except BlockingIOError:
                return
            except OSError:
                # The supervisor is gone; its successor starts from the timeouts.
                self.orphan()
                return
            self._acks.pop(0)

    def _leave(self) -> None:
        """End our own row of the registry, if the store is there for it."""
        if self._link.registration is None or not self._link.connected:
            return
        try:
            session, me = self._link.use()
            notice = DeathNotice(worker_id=me.worker_id, queue="", cause=DeathCause.SHUTDOWN, exit_code=0)
            session.release_worker(me, notice, crash_policies(self._settings, ""))
        except StoreError as error:
            log.info("own_row_not_ended", error=str(error))

    def _wait(self, now: float) -> float:
        if now < self._retry_at:
            return min(LONGEST_WAIT, self._retry_at - now)
        if self._releases.due(now) or self._acks:
            return 0.0
        if self._stopping:
            return LONGEST_WAIT
        until = [self._beat_at, *(timer.due_at for timer in self._timers)]
        if self._chores:
            until.append(self._chore_at)
        return max(0.0, min(LONGEST_WAIT, min(until, default=math.inf) - now))
