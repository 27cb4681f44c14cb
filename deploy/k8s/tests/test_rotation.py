"""Another login for a program's database, on a real PostgreSQL: a client that connects anew all the time never fails,
and what it does is done as the same role. kubectl is a stand-in that keeps Secrets as files."""

import base64
import fcntl
import json
import os
import re
import subprocess
import threading
import urllib.parse
import uuid

import pytest
from conftest import K8S

KUBECTL = r"""#!/usr/bin/env python3
import base64, fcntl, json, pathlib, sys

folder = pathlib.Path(__file__).parent
words = sys.argv[3:]
with (folder / "calls").open("a") as calls:
    calls.write(" ".join(words) + "\n")
if words[:2] == ["get", "secret"]:
    file = folder / f"{words[2]}.json"
    if not file.exists():
        sys.exit(1)
    print(json.loads(file.read_text()).get("DATABASE_URL", ""), end="")
elif words[:2] == ["patch", "secret"]:
    file = folder / f"{words[2]}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | json.load(sys.stdin)["data"]))
elif words[:2] == ["rollout", "status"]:
    if (folder / "broken").exists():
        sys.exit(1)
    # The pods have been replaced: from now on they use what the Secret says, and no old one is left.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        url = json.loads((folder / "svc-billing.json").read_text())["DATABASE_URL"]
        (folder / "pods").write_text(base64.b64decode(url).decode())
"""


class Installation:
    def __init__(self, folder, server):
        self.folder, self.server, self.role = folder, server, f"r{uuid.uuid4().hex[:10]}"
        (folder / "kubectl").write_text(KUBECTL)
        (folder / "kubectl").chmod(0o755)
        self.does(f"create role {self.role} login password 'first'")
        self.does(f"alter role {self.role} set statement_timeout = '10s'")
        self.does(f"alter role {self.role} set search_path = a, public")
        self.store(self.address(self.role, "first"))
        (folder / "pods").write_text(self.address(self.role, "first"))

    def address(self, user, password):
        return self.server._replace(netloc=f"{user}:{password}@{self.server.hostname}:{self.server.port}").geturl()

    def store(self, url):
        encoded = base64.b64encode(url.encode()).decode()
        (self.folder / "svc-billing.json").write_text(json.dumps({"DATABASE_URL": encoded}))

    def secret(self):
        return base64.b64decode(json.loads((self.folder / "svc-billing.json").read_text())["DATABASE_URL"]).decode()

    def psql(self, url, sql):
        return subprocess.run(
            [os.environ.get("PSQL", "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql],
            capture_output=True, text=True)

    def does(self, sql):
        done = self.psql(self.server.geturl(), sql)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def rotate(self, **environment):
        return subprocess.run(
            [K8S / "rotate-database-role", "administration", "svc-billing"], capture_output=True, text=True,
            env=os.environ | {
                "KUBECTL": str(self.folder / "kubectl"), "ADMIN_DATABASE_URL": self.server.geturl(), "ROTATE_WITHIN": "5",
            } | environment)

    def connect(self):
        """What a pod does: it connects with what it was given, as long as it lives."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            asked = "select current_user, current_setting('statement_timeout')"
            return self.psql((self.folder / "pods").read_text(), asked)


@pytest.fixture
def installation(tmp_path):
    made = Installation(tmp_path, urllib.parse.urlsplit(os.environ["TEST_DATABASE_URL"]))
    # Asked with a wrong password: a server that lets everybody in could prove nothing here.
    if made.psql(made.address(made.role, "wrong"), "select 1").returncode == 0:
        pytest.fail("TEST_DATABASE_URL must lead to a server that asks for passwords")
    yield made
    made.does(f"drop owned by {made.role}; drop role if exists {made.role}_b; drop role {made.role}")


def test_a_client_that_connects_all_the_time_never_fails(installation):
    wrong, times, over = [], [0], threading.Event()

    def pod():
        while not over.is_set():
            answer = installation.connect()
            times[0] += 1
            if answer.stdout.strip() != f"{installation.role}|10s":
                wrong.append(answer.stdout + answer.stderr)

    client = threading.Thread(target=pod)
    client.start()
    logins = []
    try:
        for _ in range(3):
            before = installation.secret()
            done = installation.rotate()
            assert done.returncode == 0, done.stderr
            logins.append(urllib.parse.urlsplit(installation.secret()).username)
            # The address of before is good for nothing any more.
            assert installation.psql(before, "select 1").returncode != 0
    finally:
        over.set()
        client.join()
    assert wrong == [] and times[0] > 3
    assert logins == [f"{installation.role}_b", installation.role, f"{installation.role}_b"]
    assert urllib.parse.urlsplit(installation.secret()).hostname == installation.server.hostname


def test_what_the_second_login_makes_belongs_to_the_role(installation):
    assert installation.rotate().returncode == 0
    installation.does(f"create schema {installation.role} authorization {installation.role}")
    made = installation.psql(installation.secret(), f"create table {installation.role}.t (x int); show search_path")
    assert made.returncode == 0 and made.stdout.strip() == "a, public", made.stderr
    owner = installation.does(f"select tableowner from pg_tables where schemaname = '{installation.role}'")
    assert owner == installation.role


def test_pods_that_do_not_come_up_leave_the_old_login_as_it_is(installation):
    before = installation.secret()
    (installation.folder / "broken").write_text("")
    done = installation.rotate()
    assert done.returncode != 0 and "is still good" in done.stderr
    assert installation.psql(before, "select 1").returncode == 0


def test_a_password_that_the_operator_keeps_is_changed_in_its_secret(installation):
    """CloudNativePG would set a role's password back to its Secret's. Here nobody follows it, and that is noticed."""
    kept = installation.folder / f"database-role-{installation.role}-b.json"
    kept.write_text("{}")
    before = installation.secret()
    done = installation.rotate(ROTATE_WITHIN="1")
    assert done.returncode != 0 and "nothing was changed for the programs" in done.stderr
    assert re.fullmatch(r"[0-9a-f]{48}", base64.b64decode(json.loads(kept.read_text())["password"]).decode())
    assert installation.secret() == before and installation.psql(before, "select 1").returncode == 0
