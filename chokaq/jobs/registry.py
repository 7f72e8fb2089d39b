"""What an application has registered: contracts under type keys, handlers, pipes and middleware."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any, is_typeddict

import msgspec

from chokaq.config.policies import check_policy
from chokaq.config.settings import Policy
from chokaq.jobs.context import JobContext
from chokaq.jobs.envelope import Scope, check_name, check_priority, check_scope
from chokaq.jobs.errors import EnqueueError, RegistrationError
from chokaq.jobs.handlers import describe, is_coroutine_function, refuse_generator
from chokaq.lifecycle.classifier import ErrorRules, Errors, Hook, rules

DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 10

HandlerFunction = Callable[..., Any]
Next = Callable[[], Awaitable[None]]
Middleware = Callable[[Any, JobContext, Next], Awaitable[None]]
"""`async def (job, ctx, next)`: `await next()` goes on inwards; not calling it ends the job as succeeded."""


@dataclasses.dataclass(frozen=True, slots=True)
class Registration:
    """One type key and the contract it names."""

    type_key: str
    contract: Any
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    scope: Scope | None = None
    """Scope of idempotency keys when the enqueue names none; None: active."""
    policy: Mapping[str, object] = dataclasses.field(default_factory=dict)
    """Fields of Policy that the code sets for this type; the YAML's `types:` section wins over them."""
    middleware: tuple[Middleware, ...] = ()
    """Layers around the handler of this type alone, inside those of the application, outermost first."""
    rules: tuple[ErrorRules, ...] = ()
    """What exceptions of this type's handler mean: its own rules, then its profile's."""

    @property
    def is_plain(self) -> bool:
        """True when the contract is a dict: the type key alone tells such jobs apart."""
        return self.contract is dict or is_typeddict(self.contract)

    @property
    def scope_text(self) -> str:
        """The scope as it is written on a command line: active, retained, or a duration."""
        scope, window_ms = check_scope(self.scope)
        return scope.name.lower() if window_ms is None else f"{window_ms}ms"


class Registry:
    """Registrations of an application or of one profile. Filled while modules are imported; not for concurrent writers."""

    def __init__(self) -> None:
        self._jobs: dict[str, Registration] = {}
        self._keys: dict[Any, str] = {}
        self._handlers: dict[Any, HandlerFunction] = {}
        self._pipes: dict[str, HandlerFunction] = {}
        self._middleware: list[Middleware] = []
        self.rules = ErrorRules()
        """What exceptions mean here, for all types."""

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def add_job(self, job: Registration) -> None:
        """Add a type key. Raises RegistrationError when the key is taken (in any case) or the contract is no job type."""
        _check(job)
        if taken := self._jobs.get(job.type_key.lower()):
            raise RegistrationError(
                f"type key {job.type_key!r} is registered twice: for {_name(taken.contract)} and for {_name(job.contract)}"
            )
        self._jobs[job.type_key.lower()] = job
        self._keys.setdefault(job.contract, job.type_key.lower())

    def add_handler(self, contract: Any, function: HandlerFunction) -> None:
        """Add the handler of a contract, or of one type key (a text). Raises RegistrationError when there is one already."""
        refuse_generator(function)
        if contract is dict or is_typeddict(contract):
            raise RegistrationError(
                f'handler {describe(function)}: plain dicts are told apart by type key only; write @app.handler("the.type.key")'
            )
        key = contract.lower() if isinstance(contract, str) else contract
        if taken := self._handlers.get(key):
            raise RegistrationError(
                f"{_name(contract)} has two handlers: {describe(taken)} and {describe(function)}; a job has exactly one"
            )
        self._handlers[key] = function

    def add_pipe(self, queue: str, function: HandlerFunction) -> None:
        """Make a queue a pipe. Raises RegistrationError when it is one already."""
        _checked(check_name, "queue", queue)
        refuse_generator(function)
        if taken := self._pipes.get(queue):
            raise RegistrationError(f"queue {queue!r} has two pipes: {describe(taken)} and {describe(function)}")
        self._pipes[queue] = function

    def add_middleware(self, middleware: Middleware) -> None:
        """Add a layer inside all layers added before. Raises RegistrationError when it is no coroutine function."""
        _check_layer(middleware)
        self._middleware.append(middleware)

    def add_rules(self, more: ErrorRules) -> None:
        """Add to what exceptions mean. Raises RegistrationError when that contradicts what was said before."""
        try:
            self.rules = self.rules.merged(more)
        except ValueError as error:
            raise RegistrationError(str(error)) from None

    def include(self, other: "Registry") -> None:
        """Add everything of another registry, in its order; what it says of exceptions holds for its own types."""
        for job in other.jobs:
            self.add_job(dataclasses.replace(job, rules=(*job.rules, other.rules)) if other.rules else job)
        for contract, function in other._handlers.items():
            self.add_handler(contract, function)
        for queue, function in other._pipes.items():
            self.add_pipe(queue, function)
        self._middleware.extend(other._middleware)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def jobs(self) -> list[Registration]:
        """All registrations, in the order they were made."""
        return list(self._jobs.values())

    @property
    def pipes(self) -> Mapping[str, HandlerFunction]:
        """The handler of every pipe queue."""
        return self._pipes

    @property
    def middleware(self) -> tuple[Middleware, ...]:
        """The layers, outermost first."""
        return tuple(self._middleware)

    @property
    def layers(self) -> list[Middleware]:
        """Every layer of the application and of its types."""
        return [*self._middleware, *(layer for job in self._jobs.values() for layer in job.middleware)]

    @property
    def queues(self) -> set[str]:
        """Every queue that a registration or a pipe names."""
        return {job.queue for job in self._jobs.values()} | set(self._pipes)

    def find(self, type_key: str) -> Registration | None:
        """The registration of a type key, whatever its case."""
        return self._jobs.get(type_key.lower())

    def find_contract(self, contract: Any) -> Registration | None:
        """The first registration of a contract."""
        key = self._keys.get(contract)
        return None if key is None else self._jobs[key]

    def handler_of(self, job: Registration) -> HandlerFunction | None:
        """The handler of a registration: its key's own, else its contract's; None when it has none."""
        return self._handlers.get(job.type_key.lower()) or self._handlers.get(job.contract)

    def stray_handlers(self) -> list[str]:
        """One sentence for each handler whose contract or type key is not registered."""
        return [
            f"handler {describe(function)} is for {_name(contract)}, which is not registered: add @app.job(…) to it"
            for contract, function in self._handlers.items()
            if (contract not in self._jobs if isinstance(contract, str) else contract not in self._keys)
        ]


def error_rules(
    fatal: Errors = (), transient: Errors = (), throttled: Errors = (), hook: Hook | None = None
) -> ErrorRules:
    """Checked rules of what exceptions mean. Raises RegistrationError."""
    try:
        return rules(fatal, transient, throttled, hook)
    except ValueError as error:
        raise RegistrationError(f"the classification of errors is wrong: {error}") from None


def policy_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Policy overrides, checked; timedeltas become seconds. Raises RegistrationError naming the field."""
    known = {field.name for field in msgspec.structs.fields(Policy)}
    if unknown := sorted(set(fields) - known):
        raise RegistrationError(
            f"unknown option {unknown[0]!r} of a job; policy options are {', '.join(sorted(known))}"
        )
    plain = {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in fields.items()}
    try:
        checked = msgspec.convert(plain, Policy)
    except msgspec.ValidationError as error:
        raise RegistrationError(f"a job's policy is wrong: {error}") from error
    typed = {name: getattr(checked, name) for name in plain}
    try:
        check_policy(typed)
    except ValueError as error:
        raise RegistrationError(f"a job's policy is wrong: {error}") from None
    return typed


def _check(job: Registration) -> None:
    _checked(check_name, "type key", job.type_key)
    _checked(check_name, "queue", job.queue)
    _checked(check_priority, job.priority)
    _checked(check_scope, job.scope)
    for layer in job.middleware:
        _check_layer(layer)
    contract = job.contract
    fits = job.is_plain or (
        isinstance(contract, type)
        and (
            issubclass(contract, msgspec.Struct)
            or dataclasses.is_dataclass(contract)
            or hasattr(contract, "__attrs_attrs__")
        )
    )
    if not fits:
        raise RegistrationError(
            f"{_name(contract)} cannot be the contract of {job.type_key!r}: use a msgspec.Struct, a dataclass or dict"
        )


def _check_layer(layer: Middleware) -> None:
    if not is_coroutine_function(layer):
        raise RegistrationError(f"middleware {describe(layer)} must be `async def (job, ctx, next)`")


def _checked(check: Callable[..., object], *values: object) -> None:
    try:
        check(*values)
    except EnqueueError as error:
        raise RegistrationError(str(error)) from None


def _name(contract: Any) -> str:
    return repr(contract) if isinstance(contract, str) else getattr(contract, "__name__", repr(contract))
