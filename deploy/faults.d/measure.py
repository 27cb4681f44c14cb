"""What the programs of this folder share: calls of the API, many callers at once, percentiles, the memory of processes, and
tables. Imported, never run. Only the standard library is used.

Callers live in processes of their own (fork), because one Python process uses one core and would measure itself.
"""

import collections
import dataclasses
import http.client
import json
import math
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Longer than any answer of the API takes; a request that hangs longer is unknown.
TIMEOUT = 30
# Programs that were forked know everything that they need; nothing has to be sent to them.
FORK = multiprocessing.get_context("fork")


def say(text):
    print(text, file=sys.stderr, flush=True)


# --- calls --------------------------------------------------------------------------------------------------------


class Unanswered(Exception):
    """There was no answer; `sent` tells whether the request may have arrived."""

    def __init__(self, reason, sent):
        super().__init__(reason)
        self.sent = sent


class Api:
    """One connection of one caller; without a key it is anybody's. `source` is the address that it comes from."""

    def __init__(self, url, key, source=None):
        self.host = urllib.parse.urlsplit(url).netloc
        self.key, self.source = key, source
        self.connection = None
        self.retry_after = None

    def request(self, method, path, body=None, idempotency_key=None):
        """The status and the JSON of an answer, or an empty dictionary when it has none."""
        status, content = self.exchange(method, path, body, idempotency_key)
        try:
            return status, json.loads(content) if content else {}
        except ValueError:
            return status, {}

    def exchange(self, method, path, body=None, idempotency_key=None):
        """The status and the bytes of an answer."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        sent = False
        try:
            if self.connection is None:
                source = (self.source, 0) if self.source else None
                self.connection = http.client.HTTPConnection(self.host, timeout=TIMEOUT, source_address=source)
                self.connection.connect()
            sent = True
            self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = self.connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unanswered(repr(error), sent) from error
        self.retry_after = answer.getheader("Retry-After")
        if answer.getheader("Connection", "").lower() == "close":
            self.close()
        return answer.status, content

    def must(self, method, path, body=None):
        """The `data` of an answer that has to be a success."""
        try:
            status, answer = self.request(method, path, body)
        except Unanswered as error:
            sys.exit(f"{method} {path} was not answered: {error}")
        if status not in (200, 201, 204):
            sys.exit(f"{method} {path} was answered with {status}: {answer}")
        return answer.get("data")

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


# --- the copy -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Account:
    id: str
    name: str
    key: str


class Copy:
    """The copy of the mesh that deploy/up has started; its `env` is in the environment, `state` is its folder."""

    def __init__(self, state):
        self.state = pathlib.Path(state)
        try:
            self.url, self.gateway = os.environ["BASE_URL"], os.environ["GATEWAY_BIN"]
            self.pids = {file.name: int(file.read_text()) for file in sorted((self.state / "pids").iterdir())}
        except (KeyError, OSError):
            sys.exit(f"no copy runs in {state}: start one with ./deploy/up --detach, then source {state}/env")
        if not self.pids:
            sys.exit(f"no copy runs in {state}: start one with ./deploy/up --detach")

    def account(self, name):
        """A new one, with a key to everything."""
        id = self.command("account", "create", "--name", name)
        return Account(id, name, self.command("key", "create", "--account", name, "--name", "faults", "--all-scopes"))

    def accounts(self, prefix, count):
        say(f"Making {count} accounts")
        # Names are unique in a copy, and a copy may be measured twice.
        run = f"{time.time_ns():x}"[-8:]
        return [self.account(f"{prefix}-{run}-{number}") for number in range(count)]

    def command(self, *arguments):
        done = subprocess.run([self.gateway, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"gateway {' '.join(arguments[:2])} failed: {done.stderr}")
        return done.stdout.strip()

    def psql(self, *arguments, **options):
        """Runs psql as the superuser; returns the process."""
        command = [ROOT / "deploy/postgres", "psql", self.state / "postgres", "-d", "administration", *arguments]
        return subprocess.Popen(command, **options)

    def query(self, sql):
        answer, _ = self.psql("-At", "-c", sql, stdout=subprocess.PIPE, text=True).communicate()
        return answer.strip()

    def api(self, key, source=None):
        return Api(self.url, key, source)

    def dead(self):
        """The processes that do not run any more."""
        return [name for name, pid in self.pids.items() if process_state(pid) in (None, "Z")]


def process_state(pid):
    """The letter that the kernel has for it; None when there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return stat.rpartition(") ")[2][:1]


# --- callers ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Call:
    """What a caller asks for. `kind` is what it is counted as."""

    kind: str
    method: str
    path: str
    body: object = None


@dataclasses.dataclass
class Sample:
    """One answer. `due` is when the request should have been made: one that had to wait for the answer to the one before
    counts that too, else a caller who hangs would hide all the requests that he does not make."""

    kind: str
    due: float
    begun: float
    ended: float
    status: object
    retry_after: object

    @property
    def ok(self):
        return self.status is not None and 200 <= self.status < 300

    @property
    def waited(self):
        return self.ended - self.due

    @property
    def took(self):
        return self.ended - self.begun


class Callers:
    """Callers who do the same thing, from start to stop. `script(number, turn)` says what a caller asks for next; `every` is
    the seconds between his requests (0: at once, again and again), `most` how many he makes (None: until he is stopped). With
    `obedient` he waits as Retry-After says. A key may be None; `sources` are the addresses that callers come from, by turns."""

    def __init__(self, name, url, keys, script, every=0.0, most=None, processes=1, obedient=False, sources=(None,)):
        self.name, self.url, self.keys, self.script = name, url, keys, script
        self.every, self.most, self.obedient, self.sources = every, most, obedient, sources
        self.stopping = FORK.Event()
        self.good, self.bad = FORK.Value("q", 0), FORK.Value("q", 0)
        self.inbox = FORK.SimpleQueue()
        numbers = [range(first, len(keys), processes) for first in range(processes)]
        self.processes = [FORK.Process(target=self.serve, args=(own,), daemon=True) for own in numbers]

    def start(self):
        for process in self.processes:
            process.start()
        return self

    def stop(self):
        """All samples, in the order of their ends."""
        self.stopping.set()
        samples = [sample for _ in self.processes for sample in self.inbox.get()]
        for process in self.processes:
            process.join()
        return sorted(samples, key=lambda sample: sample.ended)

    def serve(self, numbers):
        samples = []
        threads = [threading.Thread(target=self.call, args=(number, samples)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.inbox.put(samples)

    def call(self, number, samples):
        api, turn = Api(self.url, self.keys[number], self.sources[number % len(self.sources)]), 0
        # Not all at the same moment.
        due = time.monotonic() + self.every * number / max(1, len(self.keys))
        while not self.stopping.is_set() and turn != self.most:
            pause = due - time.monotonic()
            if pause > 0 and self.stopping.wait(pause):
                return
            call, begun = self.script(number, turn), time.monotonic()
            due, turn = max(due, begun - TIMEOUT), turn + 1
            try:
                status, _ = api.exchange(call.method, call.path, call.body)
            except Unanswered:
                status, api.retry_after = None, None
            ended = time.monotonic()
            sample = Sample(call.kind, due if self.every else begun, begun, ended, status, api.retry_after)
            samples.append(sample)
            count = self.good if sample.ok else self.bad
            with count.get_lock():
                count.value += 1
            due += self.every
            if self.obedient and sample.retry_after:
                due = max(due, ended + float(sample.retry_after))


def watch(seconds, groups, label):
    """Lets time pass, and says every five seconds how the callers fare."""
    end, before = time.monotonic() + seconds, {}
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(5, left))
        told = []
        for group in groups:
            now = (group.good.value, group.bad.value)
            good, bad = (new - old for new, old in zip(now, before.get(group.name, now)))
            if group.name in before:
                told.append(f"{group.name} {good} answered, {bad} not")
            before[group.name] = now
        if told:
            say(f"  {label}: {'; '.join(told)}")


def window(seconds, groups, label):
    """Lets time pass; returns when that began and ended."""
    begin = time.monotonic()
    watch(seconds, groups, label)
    return begin, time.monotonic()


def between(samples, span, when="due"):
    """Those whose request was due then, or begun, or ended."""
    return [sample for sample in samples if span[0] <= getattr(sample, when) < span[1]]


# --- figures ------------------------------------------------------------------------------------------------------


def percentile(values, share):
    """The value that so many of them are not above; nan of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


def ratio(one, other):
    return one / other if other else math.nan


def milliseconds(seconds):
    return f"{seconds * 1000:.0f}"


def statuses(samples):
    counts = collections.Counter(str(sample.status or "no answer") for sample in samples)
    return ", ".join(f"{status}: {count}" for status, count in sorted(counts.items()))


def table(head, rows):
    """As Markdown, so that it can be pasted into a document; the first column is left, the others are right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows)]
    line = lambda cells: "| " + " | ".join(
        cell.ljust(width) if place == 0 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, widths))
    ) + " |"
    rule = "| " + " | ".join("-" * w if p == 0 else "-" * (w - 1) + ":" for p, w in enumerate(widths)) + " |"
    return "\n".join([line(head), rule, *map(line, rows)])


class Targets:
    """What has to hold; told at the end."""

    def __init__(self):
        self.missed = 0

    def check(self, holds, text):
        print(f"{'ok    ' if holds else 'MISSED'} {text}", flush=True)
        self.missed += not holds

    @property
    def exit_status(self):
        return 1 if self.missed else 0


# --- memory -------------------------------------------------------------------------------------------------------


def memory_of(pid, field="VmRSS"):
    """Resident memory of a process in MiB: VmRSS now, VmHWM the most so far. 0 when it does not run."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith(f"{field}:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


class Memory:
    """Looks at the memory of processes ten times a second. The kernel's own mark of the most (VmHWM) is set back where that
    is allowed, so that a peak between two looks is seen too."""

    EVERY = 0.1

    def __init__(self, pids):
        self.pids = pids
        self.lock = threading.Lock()
        self.most = {}
        self.exact = {}
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self):
        self.begin()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def begin(self):
        """Forgets what was the most until now."""
        with self.lock:
            for name, pid in self.pids.items():
                self.exact[name] = set_back(pid)
                self.most[name] = memory_of(pid)

    def highest(self):
        """The most of each process since `begin`, in MiB."""
        with self.lock:
            marks = {name: memory_of(pid, "VmHWM") if self.exact[name] else 0.0 for name, pid in self.pids.items()}
            return {name: max(self.most[name], marks[name]) for name in self.pids}

    def look(self):
        while not self.stopping.wait(self.EVERY):
            with self.lock:
                for name, pid in self.pids.items():
                    self.most[name] = max(self.most[name], memory_of(pid))


def set_back(pid):
    """Sets the mark of the most memory of a process back to what it has; tells whether that could be done."""
    try:
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as marks:
            marks.write("5")
        return True
    except OSError:
        return False


LIMIT = re.compile(r"limits: *\{[^}]*\bmemory: *(\d+)Mi\b")
PATCHED_LIMIT = re.compile(r"path: /spec/template/spec/containers/0/resources/limits/memory, *value: *(\d+)Mi\b")


def memory_limits(names):
    """The limits of Kubernetes in MiB, by program, as the manifests have them."""
    base = ROOT / "deploy/k8s/base"
    limits = {}
    for name in names:
        own = base / name
        deployment = own / "deployment.yaml"
        found = LIMIT.search((deployment if deployment.exists() else base / "service/deployment.yaml").read_text())
        patched = PATCHED_LIMIT.search((own / "kustomization.yaml").read_text())
        if not (patched or found):
            sys.exit(f"found no memory limit of {name} in {base}: has the way that manifests write it changed?")
        limits[name] = int((patched or found).group(1))
    return limits
