"""What a child does before its loop."""

import sys
from pathlib import Path

import pytest

from chokaq.config.settings import Settings
from chokaq.worker.boot import import_app


def test_a_child_believes_the_code_it_has_imported_not_what_was_found_there_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_now.py").write_text(
        "from chokaq import ChokaQ\napp = ChokaQ()\napp.job('mail.v1', queue='q', crash_limit=5)(dict)\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    settings = Settings(
        app="shop_of_now:app",
        registered={"mail.v1": {"crash_limit": 8, "max_attempts": 1}},
        types={"mail.v1": {"on_crash": "retry"}},
    )
    policy = import_app(settings).policy("q", "mail.v1")
    assert (policy.crash_limit, policy.max_attempts, policy.on_crash) == (5, 3, "retry")
