"""From (queue, type key) to running code: everything that can be computed before the first job is computed here."""

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, Protocol

import structlog
import svcs

from chokaq.jobs.codec import decode, decoder
from chokaq.jobs.context import JobContext
from chokaq.jobs.errors import RegistrationError
from chokaq.jobs.handlers import Plan, check_returned, describe, plan
from chokaq.jobs.invoke import invoker
from chokaq.jobs.middleware import Runner, compose
from chokaq.jobs.registry import Registration, Registry
from chokaq.lifecycle.classifier import Classifier, ErrorRules, Hook

ANY_TYPE = "*"
_log = structlog.get_logger("chokaq")


class Application(Protocol):
    """What a Dispatcher needs of an application."""

    @property
    def registry(self) -> Registry:
        """Contracts, handlers, pipes, middleware."""
        ...

    @property
    def services(self) -> svcs.Registry:
        """Where the services of handlers come from."""
        ...


class Route:
    """How the jobs of one type (or of one pipe queue) are decoded and run."""

    __slots__ = ("_contract", "_runner", "classify", "is_sync", "type_key")

    def __init__(
        self, type_key: str, contract: Any, plan: Plan, runner: Runner, rules: Sequence[ErrorRules] = ()
    ) -> None:
        """`contract`: None in a pipe, whose payloads stay text; `rules`: what the handler's exceptions mean, the first first."""
        self.type_key = type_key
        """As registered; `*` in a pipe, where every job brings its own."""
        self.is_sync = plan.is_sync
        """True when the handler is a plain function and runs in the executor."""
        self.classify = Classifier(rules, _hook_broken)
        """Judges what the handler raises."""
        self._contract = contract
        self._runner = runner

    def decode(self, payload: str) -> object:
        """The job in a payload; in a pipe the payload itself. Raises PayloadError."""
        return payload if self._contract is None else decode(self._contract, payload, self.type_key)

    async def run(self, message: object, ctx: JobContext) -> None:
        """Run the middleware and the handler, with its services; whatever the handler raises comes out unwrapped.

        Cancelled, a coroutine handler gets the CancelledError at its await. A plain function cannot be interrupted: `run` goes on
        until its thread has ended, and then its own outcome stands (the caller looks at `ctx.cancel_reason` for the verdict).
        """
        if (result := await self._runner(message, ctx)) is not None:
            check_returned(result)


class Dispatcher:
    """All routes of an application, for one child process."""

    def __init__(self, app: Application, executor: Executor) -> None:
        """`app`: has `registry` and `services`; `executor`: where plain functions run.

        Raises RegistrationError when a handler's signature or a contract's fields cannot be understood.
        """
        self._services = app.services
        registry = app.registry
        self._routes: dict[str, Route] = {}
        self._pipes: dict[str, Route] = {}
        for job in registry.jobs:
            function = registry.handler_of(job)
            if function is not None:
                _check_contract(job)
                how, layers = plan(function, 1), (*registry.middleware, *job.middleware)
                runner = compose(layers, invoker(how, self._services, executor, pipe=False))
                rules = (*job.rules, registry.rules)
                self._routes[job.type_key.lower()] = Route(job.type_key, job.contract, how, runner, rules)
        for queue, function in registry.pipes.items():
            how = plan(function, 2)
            runner = compose(registry.middleware, invoker(how, self._services, executor, pipe=True))
            self._pipes[queue] = Route(ANY_TYPE, None, how, runner, (registry.rules,))

    def find(self, queue: str, type_key: str) -> Route | None:
        """The route of a job. None: a type this process does not know, or has no handler for."""
        if self._pipes and (pipe := self._pipes.get(queue)):
            return pipe
        return self._routes.get(type_key) or self._routes.get(type_key.lower())

    async def aclose(self) -> None:
        """Close what the service registry holds for the whole process."""
        await self._services.aclose()


def _check_contract(job: Registration) -> None:
    try:
        decoder(job.contract)
    except Exception as error:
        # Annotations are arbitrary code; whatever they raise, the author has to see which contract it was.
        name = getattr(job.contract, "__name__", repr(job.contract))
        raise RegistrationError(f"the contract {name} of {job.type_key!r} cannot be decoded: {error}") from error


def _hook_broken(hook: Hook, error: BaseException) -> None:
    _log.error("classifier_failed", classifier=describe(hook), error=type(error).__name__, exc_info=error)
