"""The Dockerfile: what it copies is there, what it builds exists, and every program can be chosen. There is no engine
here; an image is built where there is one, with deploy/images."""

import fnmatch
import os
import re
import subprocess
import tomllib

import pytest
from conftest import PROGRAMS, ROOT, members

TEXT = (ROOT / "deploy/Dockerfile").read_text()
INSTRUCTIONS = [
    re.sub(r"\s*\\\n\s*", " ", instruction).split(" ", 1)
    for instruction in re.findall(r"^[A-Z]+ (?:.*\\\n)*.*$", re.sub(r"(?m)^#.*\n", "", TEXT), re.MULTILINE)
]


def copied():
    """Sources that come from the repository."""
    for name, rest in INSTRUCTIONS:
        if name == "COPY" and not rest.startswith("--from"):
            *sources, target = rest.split()
            yield from ((source, target) for source in sources)


def ignored(path):
    """Whether .dockerignore keeps a file or folder out; the last rule that matches decides."""
    out = False
    for rule in (ROOT / ".dockerignore").read_text().split("\n"):
        if not rule or rule.startswith("#"):
            continue
        pattern = rule.lstrip("!")
        names = [pattern.removeprefix("**/")] if pattern.startswith("**/") else [pattern]
        parts = path.split("/")
        heads = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        tried = parts if pattern.startswith("**/") else heads
        if any(fnmatch.fnmatchcase(text, name) for name in names for text in tried):
            out = not rule.startswith("!")
    return out


def test_what_is_copied_exists_and_is_not_ignored():
    sources = [source for source, _ in copied()]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert not ignored(source), source


def test_every_member_of_the_workspace_is_copied_to_its_place():
    places = dict(copied())
    for member in members():
        assert any(member == source or member.startswith(source + "/") for source in places), member
    assert all(source == target or target == "./" for source, target in places.items())


def test_nothing_else_is_sent_to_the_builder():
    for path in (".git", ".local/secrets/context", "target/debug/gateway", "README.md", "deploy/up", "gateway/target"):
        assert ignored(path), path


def test_the_compiler_is_the_one_of_the_workspace():
    channel = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert INSTRUCTIONS[0] == ["FROM", f"rust:{channel}-bookworm AS build"]


def build_command():
    (command,) = [rest for name, rest in INSTRUCTIONS if name == "RUN" and "cargo build" in rest]
    return command


def test_the_build_command_is_one_that_cargo_takes():
    words = re.search(r"cargo build ([^&]*)", build_command())[1].split()
    assert words[words.index("--profile") + 1] == "dist"
    words.remove("dist")
    assert set(words) == {"--workspace", "--bins", "--locked", "--profile"}
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]["dist"]
    assert profile == {"inherits": "release", "lto": "thin", "strip": "symbols"}


def test_every_program_is_taken_from_the_build():
    assert set(re.findall(r"target/dist/([\w-]+)", build_command())) == set(PROGRAMS)


@pytest.mark.parametrize("service", PROGRAMS)
def test_every_program_can_be_chosen(service):
    assert choose(service) == 0


@pytest.mark.parametrize("service", ["", "seed", "svc-", "svc-billing ", "../gateway"])
def test_nothing_else_can_be_chosen(service):
    assert choose(service) != 0


def choose(service):
    (command,) = [rest for name, rest in INSTRUCTIONS if name == "RUN" and rest.startswith("case")]
    choice = command.split("&& install")[0]
    return subprocess.run(["sh", "-c", choice], env={"SERVICE": service}, capture_output=True).returncode


def test_the_image_runs_the_program_as_nobody_without_a_shell():
    last = INSTRUCTIONS[max(i for i, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM"):]
    assert last[0][1] == "gcr.io/distroless/cc-debian12:nonroot"
    found = {name: rest for name, rest in last}
    assert found["USER"] == "65532:65532"
    assert (found["ENTRYPOINT"], found["CMD"]) == ('["/program"]', '["serve"]')
    assert "RUN" not in found


def test_all_images_are_built_with_labels_of_the_commit(tmp_path):
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$SOURCE_DATE_EPOCH $*" >>{tmp_path}/calls\n')
    docker.chmod(0o755)
    for _ in range(2):
        subprocess.run(
            [ROOT / "deploy/images", "--push", "registry.example/a", "1.2.3"],
            check=True, capture_output=True, env=os.environ | {"DOCKER": str(docker)},
        )
    calls = (tmp_path / "calls").read_text().splitlines()
    first, second = calls[: len(calls) // 2], calls[len(calls) // 2:]
    assert first == second, "nothing depends on the time of the build"
    assert [call for call in first if " push " in call] == [
        call for call in first if re.search(r" push registry\.example/a/[\w-]+:1\.2\.3$", call)
    ]
    assert {re.search(r"SERVICE=([\w-]+)", call)[1] for call in first if " build " in call} == set(PROGRAMS)
    arguments = {name.split("=")[0] for name in re.findall(r"--build-arg (\S+)", first[0])}
    assert arguments - {"SOURCE_DATE_EPOCH"} == {rest.split("=")[0] for name, rest in INSTRUCTIONS if name == "ARG"}
    assert re.search(r"CREATED=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", first[0])
