"""How many connections the programs make of the database at most, and that it has as many."""

import re
import subprocess

import pytest
from conftest import PROGRAMS, ROOT, compose

# What PostgreSQL has by default, without those that are kept for its administrator.
DEFAULT = 100 - 3


def pool(build, program):
    """Of one process: its pool, and the connection that asks whether the database answers."""
    return int(build.environment("Deployment", program)["DATABASE_POOL"]) + 1


def jobs(build):
    """Each has one connection. Migrations are over before a replica is added."""
    return len(build.all("CronJob"))


def replicas(build, program, bound):
    for scaler in build.all("HorizontalPodAutoscaler"):
        if scaler["spec"]["scaleTargetRef"]["name"] == program:
            return scaler["spec"][bound]
    return build.get("Deployment", program)["spec"].get("replicas", 1)


def surge(build, program):
    return build.get("Deployment", program)["spec"]["strategy"]["rollingUpdate"]["maxSurge"]


def at_least(build):
    """With the fewest replicas, while a release is rolled out."""
    return jobs(build) + sum(
        (replicas(build, program, "minReplicas") + surge(build, program)) * pool(build, program)
        for program in PROGRAMS)


def at_most(build):
    """With the most replicas, while a release is rolled out and all that leave still have their connections."""
    return jobs(build) + sum(
        2 * replicas(build, program, "maxReplicas") * pool(build, program) for program in PROGRAMS)


def test_a_database_with_its_defaults_has_connections_for_every_overlay(build):
    assert at_least(build) <= DEFAULT


def test_a_database_with_its_defaults_has_connections_for_the_dump_too(tmp_path):
    bare = compose(tmp_path / "overlay", "administration", "backup")
    assert at_most(bare) <= DEFAULT, "without an autoscaler"


def said(words):
    text = (ROOT / "docs/kubernetes.md").read_text()
    found = re.search(words, re.sub(r"\s+", " ", text))
    assert found, f"docs/kubernetes.md does not say {words}"
    return tuple(map(int, found.groups()))


def test_the_document_says_how_many_connections_production_makes(builds):
    production = builds["production"]
    assert said(r"production with its fewest replicas makes at most (\d+) connections") == (at_least(production),)
    most, enough = said(
        r"production with its most replicas makes at most (\d+) connections: "
        r"set `max_connections` to (\d+) before you let it grow")
    assert most == at_most(production) and at_most(production) <= enough - 3


def pool_on_one_machine(available, replicas):
    """What deploy/up gives each process, asked of the script itself."""
    return subprocess.run(
        ["bash", "-c", '. "$0/deploy/up"; pool_for "$1" "$2"', str(ROOT), str(available), str(replicas)],
        capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})


@pytest.mark.parametrize("replicas", range(1, 10))
def test_one_machine_has_connections_for_all_of_its_replicas(replicas):
    own = re.findall(r"^max_connections = (\d+)$", (ROOT / "deploy/postgres").read_text(), re.MULTILINE)
    for available in (*(int(most) - 3 for most in own), DEFAULT):
        each = pool_on_one_machine(available, replicas)
        if available == DEFAULT and replicas > 6:
            assert each.returncode != 0 and "raise its max_connections" in each.stderr
            continue
        assert 1 <= int(each.stdout) <= 8 and len(own) == 2
        assert replicas * len(PROGRAMS) * (int(each.stdout) + 1) + 10 <= available
