"""The Dockerfile: what it copies is there, what it builds exists, and every program can be chosen. There is no engine
here; an image is built where there is one, with deploy/images, which a stand-in for docker sees called. That the sources
which reach the builder compile is the step `image` of deploy/test."""

import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import tomllib

import pytest
from conftest import PROGRAMS, ROOT, members

loader = importlib.machinery.SourceFileLoader("image_context", str(ROOT / "deploy/image-context"))
context = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(context)

TEXT = (ROOT / "deploy/Dockerfile").read_text()
INSTRUCTIONS = context.instructions(TEXT)
ignored = context.Ignore((ROOT / ".dockerignore").read_text())
# Set by the builder itself.
OWN_ARGUMENTS = {"TARGETARCH"}


def copied():
    """Sources that come from the repository: the first stage takes all."""
    return list(context.copied(TEXT, "build"))


@pytest.mark.parametrize("rules,path,out", [
    ("*", "a/b", True),
    ("*\n!a", "a/b", False),
    ("*\n!a/b", "a/c", True),
    ("*\n!a/b", "a/b/c", False),
    ("!a\n*", "a", True),
    ("*.log", "a.log", True),
    ("*.log", "a/b.log", False),
    ("**/*.log", "a/b.log", True),
    ("**/*.log", "b.log", True),
    ("**/target", "a/target/x", True),
    ("**/target", "a/targets", False),
    ("a/**", "a/b/c", True),
    ("a/**/c", "a/c", True),
    ("a?", "a/b", False),
    ("a?", "ab", True),
    ("# a\n\n/a/", "a/b", True),
    ("a[bc]", "ac", True),
    ("a.b", "axb", False),
])
def test_files_are_left_out_by_the_rules_of_docker(rules, path, out):
    assert context.Ignore(rules)(path) == out


def test_a_file_that_is_left_out_is_missing_from_what_is_compiled(tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    for folder in (whole, part):
        (folder / "deploy").mkdir(parents=True)
        (folder / "a/target").mkdir(parents=True)
        (folder / "a/x").write_text("")
        (folder / "a/target/y").write_text("")
        (folder / "b").write_text("")
        (folder / "deploy/Dockerfile").write_text("FROM x AS build\nCOPY a inside/a\nCOPY b ./\nFROM build\nCOPY c c\n")
        (folder / ".dockerignore").write_text("*\n!a\n!b\n**/target\n")
    context.lay_out(whole, tmp_path / "laid out")
    made = tmp_path / "laid out"
    found = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert found == {"inside/a/x", "b"}
    (part / ".dockerignore").write_text("*\n!a\n")
    with pytest.raises(SystemExit, match="b is copied"):
        context.lay_out(part, tmp_path / "nothing")


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


def default(argument):
    (rest,) = [rest for name, rest in INSTRUCTIONS if name == "ARG" and rest.startswith(argument + "=")]
    return rest.removeprefix(argument + "=")


def stages():
    return [rest for name, rest in INSTRUCTIONS if name == "FROM"]


def test_the_compiler_is_the_one_of_the_workspace():
    channel = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert default("RUST_IMAGE") == f"rust:{channel}-bookworm"
    assert stages()[0] == "--platform=$BUILDPLATFORM ${RUST_IMAGE} AS build"


def test_the_profile_is_one_that_cargo_knows():
    (command,) = [rest for name, rest in INSTRUCTIONS if name == "RUN" and "image-build programs" in rest]
    assert command.endswith('deploy/image-build programs "$TARGETARCH" dist /programs')
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]["dist"]
    assert profile == {"inherits": "release", "lto": "thin", "strip": "symbols"}


@pytest.fixture
def toolchain(tmp_path):
    """Stand-ins that write down how they were called; rustc says that this machine is an amd64."""
    for name in ("cargo", "apt-get", "rustup", "rustc"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f'#!/bin/sh\necho "{name} $* linker=${{CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER:-}}'
            f' cc=${{CC_aarch64_unknown_linux_gnu:-}}" >>{tmp_path}/calls\necho "host: x86_64-unknown-linux-gnu"\n')
        program.chmod(0o755)

    def run(*arguments):
        (tmp_path / "calls").write_text("")
        done = subprocess.run(
            [ROOT / "deploy/image-build", *arguments], capture_output=True, text=True, cwd=tmp_path,
            env={"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
        calls = [call for call in (tmp_path / "calls").read_text().splitlines() if not call.startswith("rustc")]
        return done, calls

    return run


@pytest.mark.parametrize("arch,place", [("amd64", "target/dist"), ("arm64", "target/aarch64-unknown-linux-gnu/dist")])
def test_every_program_is_taken_from_the_build(toolchain, tmp_path, arch, place):
    for program in PROGRAMS:
        (tmp_path / program).mkdir()
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / program).write_text(program)
    done, (call,) = toolchain("programs", arch, "dist", "programs")
    assert done.returncode == 0, done.stderr
    assert call.startswith("cargo auditable build --workspace --bins --locked --profile dist ")
    assert {path.name: path.read_text() for path in (tmp_path / "programs").iterdir()} == {it: it for it in PROGRAMS}


def test_another_processor_has_its_own_compiler_for_rust_and_c(toolchain):
    _, native = toolchain("programs", "amd64", "dist", "programs")
    assert "--target" not in native[0] and "gcc" not in native[0]
    _, foreign = toolchain("programs", "arm64", "dist", "programs")
    assert "--target aarch64-unknown-linux-gnu" in foreign[0]
    assert "linker=aarch64-linux-gnu-gcc cc=aarch64-linux-gnu-gcc" in foreign[0]
    _, tools = toolchain("tools", "amd64")
    assert len(tools) == 1 and re.match(r"cargo install -q cargo-auditable --version [\d.]+ --locked", tools[0])
    refused, calls = toolchain("tools", "riscv64")
    assert refused.returncode != 0 and "amd64 or arm64" in refused.stderr and calls == []


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
    assert last[0][1] == "${RUNTIME_IMAGE}" and default("RUNTIME_IMAGE") == "gcr.io/distroless/cc-debian12:nonroot"
    found = {name: rest for name, rest in last}
    assert found["USER"] == "65532:65532"
    assert (found["ENTRYPOINT"], found["CMD"]) == ('["/program"]', '["serve"]')
    assert "RUN" not in found


BASES = {"RUST_IMAGE": default("RUST_IMAGE"), "RUNTIME_IMAGE": default("RUNTIME_IMAGE")}
DIGESTS = {image: f"sha256:{number:064x}" for number, image in enumerate(BASES.values())}


@pytest.fixture
def images(tmp_path):
    """deploy/images in a checkout of its own, with a docker that writes its calls down and knows two digests."""
    checkout = tmp_path / "checkout"
    (checkout / "deploy").mkdir(parents=True)
    for file in ("images", "lib.sh", "Dockerfile"):
        shutil.copy2(ROOT / "deploy" / file, checkout / "deploy")
    git = ["git", "-C", checkout, "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], check=True)
    docker = tmp_path / "docker"
    known = "".join(f"*{image}) echo {digest} ;;\n" for image, digest in DIGESTS.items())
    docker.write_text(
        f'#!/bin/sh\necho "$SOURCE_DATE_EPOCH $*" >>{tmp_path}/calls\n'
        f'case "$*" in\n*imagetools*) case "$*" in\n{known}*) exit 1 ;;\nesac ;;\nesac\n')
    docker.chmod(0o755)

    def run(*arguments):
        (tmp_path / "calls").write_text("")
        done = subprocess.run(
            [checkout / "deploy/images", *arguments], capture_output=True, text=True,
            env=os.environ | {"DOCKER": str(docker)})
        return done, (tmp_path / "calls").read_text().splitlines()

    run.checkout = checkout
    return run


def test_nothing_is_pushed_that_is_not_built_on_digests(images):
    done, calls = images("--push", "registry.example/a", "1.2.3")
    assert done.returncode != 0 and "deploy/images --lock" in done.stderr and calls == []
    assert images("--lock")[0].returncode == 0
    done, calls = images("--push", "registry.example/a", "1.2.3")
    assert done.returncode == 0 and len(calls) == len(PROGRAMS), done.stderr
    for call in calls:
        for argument, image in BASES.items():
            assert f"--build-arg {argument}={image}@{DIGESTS[image]} " in call
    # A base image that changed is not in the lock any more.
    dockerfile = images.checkout / "deploy/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("cc-debian12:nonroot", "cc-debian13:nonroot"))
    done, calls = images("--push", "registry.example/a", "1.2.3")
    assert done.returncode != 0 and "cc-debian13" in done.stderr and calls == []


def test_a_registry_that_does_not_answer_leaves_the_lock_as_it_is(images):
    images("--lock")
    lock = images.checkout / "deploy/base-images.lock"
    before = lock.read_text()
    assert all(f"{image} {digest}\n" in before for image, digest in DIGESTS.items())
    dockerfile = images.checkout / "deploy/Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("cc-debian12:nonroot", "unknown"))
    assert images("--lock")[0].returncode != 0
    assert lock.read_text() == before and list(lock.parent.glob("*.new")) == []


def test_images_for_this_machine_need_no_lock(images):
    done, calls = images("administration", "dev")
    assert done.returncode == 0 and "Note:" in done.stderr
    assert all("type=docker" in call and "push" not in call and "--platform" not in call for call in calls)


def test_all_images_are_built_alike_from_the_commit(images):
    images("--lock")
    (_, first), (_, second) = (images("--push", "registry.example/a", "1.2.3") for _ in range(2))
    assert first == second, "nothing depends on the time of the build"
    time = subprocess.run(
        ["git", "-C", images.checkout, "log", "-1", "--format=%ct"], capture_output=True, text=True).stdout.strip()
    for call in first:
        assert call.startswith(f"{time} buildx build ") and f"SOURCE_DATE_EPOCH={time} " in call
        assert "--platform linux/amd64,linux/arm64 --sbom=true --provenance=true " in call
        assert "push=true,rewrite-timestamp=true" in call
        service = re.search(r"SERVICE=([\w-]+)", call)[1]
        assert f"-t registry.example/a/{service}:1.2.3 " in call
        assert re.search(r"CREATED=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", call)
    assert {re.search(r"SERVICE=([\w-]+)", call)[1] for call in first} == set(PROGRAMS)
    arguments = {name.split("=")[0] for name in re.findall(r"--build-arg (\S+)", first[0])}
    declared = {rest.split("=")[0] for name, rest in INSTRUCTIONS if name == "ARG"}
    assert arguments - {"SOURCE_DATE_EPOCH"} == declared - OWN_ARGUMENTS

