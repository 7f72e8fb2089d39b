"""Death notices on their way to the maintenance process: kept until acknowledged, given to every new incarnation of it."""

import socket

import structlog

from chokaq.maintenance.channel import Notice, Stop, encode, receive_acks
from chokaq.store.records import DeathNotice

log = structlog.get_logger("chokaq")


class NoticeDesk:
    """The supervisor's side of the channel. Never blocks: what the socket does not take now is sent on a later turn."""

    def __init__(self) -> None:
        self._pending: dict[int, DeathNotice] = {}
        self._sent: set[int] = set()
        self._count = 0
        self._channel: socket.socket | None = None
        self._stop_wanted = False
        self._stop_sent = False

    @property
    def channel(self) -> socket.socket | None:
        """The socket to select on; None while no maintenance process runs."""
        return self._channel

    @property
    def pending(self) -> int:
        """Notices not yet acknowledged."""
        return len(self._pending)

    @property
    def wants_to_write(self) -> bool:
        """True when something still has to be sent."""
        return self._channel is not None and (
            len(self._sent) < len(self._pending) or self._stop_wanted > self._stop_sent
        )

    def add(self, notice: DeathNotice) -> None:
        """Keep a notice until it is acknowledged."""
        self._count += 1
        self._pending[self._count] = notice
        self.flush()

    def attach(self, channel: socket.socket) -> None:
        """A new maintenance process: it gets everything that is pending."""
        self.detach()
        self._channel = channel
        self.flush()

    def detach(self) -> None:
        """The maintenance process is gone, or this is a child that must not hold its channel."""
        if self._channel is not None:
            self._channel.close()
        self._channel = None
        self._sent.clear()
        self._stop_sent = False

    def ask_to_stop(self, *, wanted: bool = True) -> None:
        """Tell maintenance to end once it has carried out everything; `wanted=False` takes that back for the next one."""
        self._stop_wanted = wanted
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes, notices in order and the stop last."""
        for number, notice in self._pending.items():
            if number not in self._sent:
                if not self._send(encode(Notice(number, notice))):
                    return
                self._sent.add(number)
        if self._stop_wanted and not self._stop_sent:
            self._stop_sent = self._send(encode(Stop()))

    def receive(self) -> None:
        """Take in acknowledgements: what they settle is forgotten."""
        if self._channel is None:
            return
        acks, alive = receive_acks(self._channel)
        for ack in acks:
            self._sent.discard(ack.number)
            notice = self._pending.pop(ack.number, None)
            if notice is not None:
                log.info("notice_acknowledged", worker_id=notice.worker_id, queue=notice.queue, cause=notice.cause)
        if not alive:
            self.detach()

    def _send(self, packet: bytes) -> bool:
        if self._channel is None:
            return False
        try:
            self._channel.send(packet)
        except BlockingIOError:
            return False
        except OSError:
            # It died; the reaper will tell, and the next incarnation gets everything again.
            self.detach()
            return False
        return True
