"""The outside world of the demo: a real SMTP server and a real HTTP endpoint on loopback, which remember what they received.

A program: `python -m chokaq.demo.endpoints` prints one JSON line with its ports and ends when its standard input closes.
`GET /ledger` answers `{"emails": {job id: accepted}, "messages": {…}, "refused": {job id: code}}`.
"""

import asyncio
import sys
from collections import Counter
from email import message_from_bytes

import orjson
from aiohttp import web
from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as SmtpSession

HOST = "127.0.0.1"
PATIENCE_SECONDS = "0.5"


class Ledger:
    """What was accepted, how often, and what was refused for ever."""

    def __init__(self) -> None:
        self.emails: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self.refused: dict[str, int] = {}
        self.seen: set[str] = set()

    def first_time(self, who: str) -> bool:
        """True once per name: how greylisting works."""
        if who in self.seen:
            return False
        self.seen.add(who)
        return True

    def as_json(self) -> bytes:
        return orjson.dumps({"emails": self.emails, "messages": self.messages, "refused": self.refused})


class MailServer:
    """Rejects `gone…` for ever, `greylist…` at the first try, and accepts the rest."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def handle_RCPT(  # noqa: N802 - the name is aiosmtpd's
        self, _server: SMTP, _session: SmtpSession, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        if address.startswith("gone"):
            return "550 no such user"
        if address.startswith("greylist") and self.ledger.first_time(address):
            return "451 greylisted, come back later"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(  # noqa: N802 - the name is aiosmtpd's
        self, _server: SMTP, _session: SmtpSession, envelope: Envelope
    ) -> str:
        content = envelope.content if isinstance(envelope.content, bytes) else (envelope.content or "").encode()
        self.ledger.emails[str(message_from_bytes(content)["X-Job-Id"])] += 1
        return "250 accepted"


class MessageService:
    """Channels ending in 00 at the first try ask for patience; channel 13 is gone; the rest accept."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger

    async def receive(self, request: web.Request) -> web.Response:
        channel, job_id = int(request.match_info["channel"]), request.headers["X-Job-Id"]
        await request.read()
        if channel == 13:
            self.ledger.refused[job_id] = 410
            return web.Response(status=410)
        if channel % 500 == 0 and self.ledger.first_time(job_id):
            return web.Response(status=429, headers={"Retry-After": PATIENCE_SECONDS})
        self.ledger.messages[job_id] += 1
        return web.Response(status=202)

    async def show(self, _request: web.Request) -> web.Response:
        return web.Response(body=self.ledger.as_json(), content_type="application/json")


async def serve() -> None:
    """Serve until standard input closes."""
    loop, ledger = asyncio.get_running_loop(), Ledger()
    mail = MailServer(ledger)
    smtp = await loop.create_server(lambda: SMTP(mail, hostname="demo.localhost", loop=loop), HOST, 0)
    service = MessageService(ledger)
    app = web.Application()
    app.router.add_post("/channels/{channel}", service.receive)
    app.router.add_get("/ledger", service.show)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    ports = {"smtp": smtp.sockets[0].getsockname()[1], "http": runner.addresses[0][1]}
    sys.stdout.write(orjson.dumps(ports).decode() + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    smtp.close()
    await runner.cleanup()


if __name__ == "__main__":
    try:
        import uvloop

        uvloop.run(serve())
    except KeyboardInterrupt:
        pass
