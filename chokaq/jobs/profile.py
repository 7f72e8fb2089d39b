"""Decorators with which an application, or a profile of it, registers what it does."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from chokaq.jobs.envelope import Scope
from chokaq.jobs.errors import RegistrationError
from chokaq.jobs.registry import (
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    HandlerFunction,
    Middleware,
    Registration,
    Registry,
    error_rules,
    policy_fields,
)
from chokaq.lifecycle.classifier import Errors, Hook

_Contract = TypeVar("_Contract", bound=type)
_Function = TypeVar("_Function", bound=HandlerFunction)
_Layer = TypeVar("_Layer", bound=Middleware)
_Hook = TypeVar("_Hook", bound=Hook)


class Registrar:
    """The decorators shared by ChokaQ and Profile."""

    def __init__(self, *, queue: str = DEFAULT_QUEUE, priority: int = DEFAULT_PRIORITY) -> None:
        """`queue`, `priority`: what a job gets that names none."""
        self.registry = Registry()
        self._queue = queue
        self._priority = priority
        self._closed = False

    @overload
    def job(
        self,
        type_key: str,
        contract: None = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        scope: Scope | None = None,
        middleware: Sequence[Middleware] = (),
        fatal: Errors = (),
        transient: Errors = (),
        throttled: Errors = (),
        classifier: Hook | None = None,
        **policy: object,
    ) -> Callable[[_Contract], _Contract]: ...

    @overload
    def job(
        self,
        type_key: str,
        contract: _Contract,
        *,
        queue: str | None = None,
        priority: int | None = None,
        scope: Scope | None = None,
        middleware: Sequence[Middleware] = (),
        fatal: Errors = (),
        transient: Errors = (),
        throttled: Errors = (),
        classifier: Hook | None = None,
        **policy: object,
    ) -> _Contract: ...

    def job(
        self,
        type_key: str,
        contract: Any = None,
        *,
        queue: str | None = None,
        priority: int | None = None,
        scope: Scope | None = None,
        middleware: Sequence[Middleware] = (),
        fatal: Errors = (),
        transient: Errors = (),
        throttled: Errors = (),
        classifier: Hook | None = None,
        **policy: object,
    ) -> Any:
        """Register a contract (msgspec.Struct, dataclass or dict) under a persisted type key; as a decorator or directly.

        The key is what the database holds: name it like `email.send.v1`, and give a breaking change a new one. Keys do not
        distinguish case; several keys may name one contract, and the first is used to enqueue. `scope`: how long an idempotency
        key of such a job answers, when the enqueue does not say. `middleware`: layers around the handler of
        this type alone, inside those of the application. `fatal`, `transient`, `throttled`, `classifier`: what this type's
        exceptions mean, before the application and the built-in rules are asked (see `classify`). `policy`: fields of Policy
        (`max_attempts=5`, `execution_timeout=timedelta(hours=1)`, …) that differ for this type; the YAML's `types:` section wins
        over them.

        Raises RegistrationError for a key taken, an unknown option or a type that cannot be a contract.
        """

        own = error_rules(fatal, transient, throttled, classifier)

        def register(target: Any) -> Any:
            self._open().add_job(
                Registration(
                    type_key=type_key,
                    contract=target,
                    queue=self._queue if queue is None else queue,
                    priority=self._priority if priority is None else priority,
                    scope=scope,
                    policy=policy_fields(policy),
                    middleware=tuple(middleware),
                    rules=(own,) if own else (),
                )
            )
            return target

        return register if contract is None else register(contract)

    def handler(self, contract: Any) -> Callable[[_Function], _Function]:
        """Register the function that does the work of a contract, or of one type key given as text (needed for dicts).

        It takes the job, then (optional) the JobContext, then any parameters annotated with types known to `app.services`:
        those are created for the one job and closed after it. `async def` runs on the event loop, `def` in the thread pool.
        Raises RegistrationError when there is a handler already.
        """

        def register(function: _Function) -> _Function:
            self._open().add_handler(contract, function)
            return function

        return register

    def pipe(self, queue: str) -> Callable[[_Function], _Function]:
        """Register the one handler of all jobs of a queue: it takes the type key, the payload as JSON text, and the rest as above.

        For streams whose volume or variety does not warrant a contract each.
        """

        def register(function: _Function) -> _Function:
            self._open().add_pipe(queue, function)
            return function

        return register

    def middleware(self, layer: _Layer) -> _Layer:
        """Register a layer around every handler: `async def (job, ctx, next)`; the first registered is the outermost.

        `await next()` runs what lies inside; a layer that does not call it ends the job as succeeded. Exceptions of the handler
        pass through it unwrapped. In a pipe queue `job` is the payload text.
        """
        self._open().add_middleware(layer)
        return layer

    def classify(self, *, fatal: Errors = (), transient: Errors = (), throttled: Errors = ()) -> None:
        """Say what exception classes mean, theirs and those that inherit from them; a profile says it for its own types.

        `fatal`: to the DLQ at once; `transient`: another attempt; `throttled`: another attempt after the exception's own
        `retry_after` (seconds or a timedelta), if it has one. The chain of causes is walked from the outside in; at each link
        the type's own rules speak first, then these, then the built-in ones. May be called several times. Raises
        RegistrationError for what is no exception class, and for one class in two lists.
        """
        self._open().add_rules(error_rules(fatal, transient, throttled))

    def classifier(self, hook: _Hook) -> _Hook:
        """Register a function that says what an exception means, where its class alone does not tell.

        It is called with one exception of the chain at a time and answers "fatal", "transient", "throttled", or None for no
        opinion; it speaks before the lists of `classify`. When it raises, the lists and the built-in rules decide, and it is
        logged. Raises RegistrationError when there is one already.
        """
        self._open().add_rules(error_rules(hook=hook))
        return hook

    def _open(self) -> Registry:
        if self._closed:
            raise RegistrationError(
                "the profile has already been included in an application, which would not see this registration: "
                "import all its modules first, then include it"
            )
        return self.registry


class Profile(Registrar):
    """A group of registrations, written in its own module and added by `app.include(profile)`."""

    def __init__(self, name: str = "", *, queue: str = DEFAULT_QUEUE, priority: int = DEFAULT_PRIORITY) -> None:
        """`queue`, `priority`: what a job of this profile gets that names none."""
        super().__init__(queue=queue, priority=priority)
        self.name = name

    def close(self) -> None:
        """Refuse registrations from now on: they would come too late for the application that has included the profile."""
        self._closed = True
