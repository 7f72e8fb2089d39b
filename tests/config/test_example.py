"""The example file: complete, and equal to the defaults, as it stands and with every option taken in."""

import re
from pathlib import Path

import msgspec

from chokaq.config import QueueSettings, Settings, load_settings
from chokaq.config.docs import field_docs
from chokaq.config.example import example
from chokaq.config.sections import (
    DATABASE,
    DECK,
    ENVELOPE,
    IDEMPOTENCY,
    MAINTENANCE,
    METRICS,
    POLICY,
    PROBES,
    QUEUE,
    SUPERVISOR,
    TOP,
)
from chokaq.config.settings import (
    DeckSettings,
    EnvelopeSettings,
    IdempotencySettings,
    MaintenanceSettings,
    Policy,
    ProbesSettings,
    SupervisorSettings,
)
from chokaq.observe.metrics import MetricsSettings
from chokaq.store.options import DatabaseSettings

OPTION = re.compile(r"^( *)#(\w[\w.]*: .*)$", re.MULTILINE)


def load(tmp_path: Path, text: str) -> Settings:
    """The settings a text stands for, its paths and its own name left out."""
    path = tmp_path / "chokaq.yaml"
    path.write_text(text, encoding="utf-8")
    settings = load_settings(path, {})
    assert settings.database.url == f"sqlite:///{tmp_path}/chokaq.db"
    database = msgspec.structs.replace(settings.database, url=DatabaseSettings().url)
    return msgspec.structs.replace(settings, database=database, source=None)


def test_the_example_loads_as_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, example()) == Settings()


def test_the_example_with_every_option_taken_in_is_the_defaults_too(tmp_path: Path) -> None:
    settings = load(tmp_path, OPTION.sub(r"\1\2", example()))
    assert list(settings.queues) == ["emails", "messages", "reports"]
    assert list(settings.types) == ["email.send.v1"]
    assert settings.queue("another") == QueueSettings(name="another")
    assert set(settings.queue_defaults) == set(QUEUE)
    assert list(settings.deck.users) == ["anna"]
    bare = msgspec.structs.replace(settings, queues={}, types={}, queue_defaults={}, deck=DeckSettings())
    assert bare == Settings()
    assert msgspec.structs.replace(settings.deck, users={}) == DeckSettings()


def test_every_option_is_in_the_example_with_its_meaning() -> None:
    text = example()
    for section in (
        TOP,
        DATABASE,
        QUEUE,
        POLICY,
        SUPERVISOR,
        MAINTENANCE,
        ENVELOPE,
        IDEMPOTENCY,
        DECK,
        PROBES,
        METRICS,
    ):
        for name in section:
            assert re.search(rf"# .+\n *#{name}: ", text), name


def test_every_setting_is_documented() -> None:
    for struct in (
        Policy,
        QueueSettings,
        DatabaseSettings,
        SupervisorSettings,
        MaintenanceSettings,
        EnvelopeSettings,
        IdempotencySettings,
        DeckSettings,
        ProbesSettings,
        MetricsSettings,
        Settings,
    ):
        undocumented = [name for name, doc in field_docs(struct).items() if not doc]
        assert undocumented == ["name"] * (struct is QueueSettings), struct


def test_the_example_fits_a_terminal() -> None:
    assert max(map(len, example().splitlines())) <= 120
