"""Old and new programs on one schema: a rolling deploy under load, either beside the other, and back again.

Seen from outside: applications of either version are answered every time, every job ends as it should exactly once (the verifier of
the chaos suite holds the tables against what the handlers wrote down), and no worker logs a warning.
"""

import json
import signal
from pathlib import Path

from chokaq.store.sqlserver.scripts import latest
from tests.upgrade.deployment import BOOT, Deployment


def test_the_programs_are_those_of_their_versions(deployment: Deployment) -> None:
    """Else the rest of this file proves nothing."""
    for folder in (deployment.old, deployment.new):
        assert Path(deployment.imported(folder)).is_relative_to(folder)
    assert deployment.old != deployment.new


def test_a_rolling_deploy_loses_and_refuses_nothing(deployment: Deployment) -> None:
    old, new = deployment.old, deployment.new
    deployment.run(old, "schema", "apply")
    before = deployment.worker(old)
    first = deployment.client(old)
    deployment.work_on(40)

    # The schema first, under load.
    deployment.run(new, "schema", "apply")
    deployment.work_on(40)
    assert json.loads(deployment.run(new, "schema", "check", "--json"))["drift"] == []

    # Old programs that start now find it as well as those that were there: an application, and children.
    late = deployment.client(old)
    children = set(deployment.children(before))
    before.send(signal.SIGUSR2)
    before.until(lambda: not children & set(deployment.children(before)), "new children of the old program", BOOT)
    deployment.work_by(before, 20)

    # New programs beside them.
    after = deployment.worker(new)
    deployment.client(new)
    deployment.work_by(after, 30)
    deployment.work_by(before, 10)

    # The old ones go, in the middle of their jobs.
    deployment.drain(before)
    deployment.stop_clients(first, late)
    deployment.work_by(after, 40)

    verdict = deployment.finish()
    assert verdict.crashed == verdict.repeated == 0
    assert verdict.jobs > 150


def test_an_old_application_is_served_by_a_new_worker(deployment: Deployment) -> None:
    deployment.run(deployment.old, "schema", "apply")
    deployment.run(deployment.new, "schema", "apply")
    worker = deployment.worker(deployment.new)
    deployment.client(deployment.old)
    deployment.work_by(worker, 60)
    assert deployment.finish().crashed == 0


def test_a_new_application_is_served_by_an_old_worker(deployment: Deployment) -> None:
    """Somebody deploys the application first."""
    deployment.run(deployment.old, "schema", "apply")
    deployment.run(deployment.new, "schema", "apply")
    worker = deployment.worker(deployment.old)
    deployment.client(deployment.new)
    deployment.work_by(worker, 60)
    assert deployment.finish().crashed == 0


def test_back_to_the_old_program_on_the_new_schema(deployment: Deployment) -> None:
    """What the new program left behind, the old one works off; its commands go on working."""
    old, new = deployment.old, deployment.new
    deployment.run(new, "schema", "apply")
    worker = deployment.worker(new)
    application = deployment.client(new)
    deployment.work_by(worker, 60)
    deployment.drain(worker)
    deployment.accept(application, 60)
    deployment.stop_clients(application)
    left = deployment.lab.count("JobsHot")
    assert left > 0

    worker = deployment.worker(old)
    deployment.client(old)
    deployment.work_by(worker, left)

    stopped = json.loads(deployment.run(old, "dlq", "list", "--json"))["jobs"]
    assert stopped
    assert all(job["status"] == "Failed" for job in stopped if job["type_key"] == "chaos.fatal")
    assert {queue["name"] for queue in json.loads(deployment.run(old, "queues", "list", "--json"))["queues"]} == {
        "main",
        "side",
    }
    deployment.run(old, "queues", "pause", "main", "--reason", "a look")
    deployment.run(old, "queues", "resume", "main", "--reason", "looked")
    if deployment.lab.kind == "sqlite":
        # It takes the schema for its own, and has nothing to do.
        assert "nothing to do" in deployment.run(old, "schema", "apply")
    else:
        # 0.1.0 never puts its own procedures over newer ones: it refuses, and changes nothing.
        assert "newer than this program knows" in deployment.run(old, "schema", "apply", code=5)
    assert json.loads(deployment.run(new, "schema", "check", "--json"))["drift"] == []
    assert deployment.finish().crashed == 0


def test_the_upgraded_schema_is_the_one_that_is_installed_afresh(deployment: Deployment) -> None:
    deployment.run(deployment.old, "schema", "apply")
    assert json.loads(deployment.run(deployment.new, "schema", "check", "--json", code=1))["drift"] != []
    applied = json.loads(deployment.run(deployment.new, "schema", "apply", "--json"))
    assert applied["applied"]
    assert applied["version"] == latest()
    assert json.loads(deployment.run(deployment.new, "schema", "check", "--json"))["drift"] == []
    assert json.loads(deployment.run(deployment.new, "schema", "apply", "--json"))["applied"] == []


def test_a_new_program_on_the_old_schema_says_what_to_do(deployment: Deployment) -> None:
    """Schema first, programs after."""
    deployment.run(deployment.old, "schema", "apply")
    told = deployment.run(deployment.new, "queues", "list", code=5)
    assert "run `chokaq schema apply`" in told
