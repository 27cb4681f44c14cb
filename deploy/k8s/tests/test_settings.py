"""The programs get the settings that they know, and all that they need; whom they call is what the sources say."""

import re
import subprocess

from conftest import NO_SETTING, PROGRAMS, ROOT, SECRETS, SERVICES, area, members, migration, settings_of

# A default that fits one machine only.
ONE_MACHINE = re.compile(r"127\.0\.0\.1|localhost|\.local|development|pretty")
# What makes another setting needless.
INSTEAD = {"MAIL_DIR": "SMTP_URL", "FILES_DIR": "FILES_S3_BUCKET"}
# Asked for at start, though the declaration has an empty default.
REQUIRED = {"CONTEXT_SECRET"}


def workloads():
    for program in PROGRAMS:
        yield program, "Deployment", program
        yield program, "Job", migration(program)


def set_names(environment):
    """The settings that are set, directly or by a file."""
    return {name.removesuffix("_FILE") for name in environment} - NO_SETTING


def test_the_sources_declare_settings():
    assert {"LISTEN", "DATABASE_URL", "TLS_CA", "MESH_LISTEN"} <= set(settings_of("gateway"))
    assert {"LISTENERS", "SMTP_URL", "FILES_S3_SECRET"} <= set(settings_of("svc-billing"))
    assert "SMTP_URL" not in settings_of("gateway")
    assert settings_of("svc-billing")["MOLLIE_API_KEY"].secret and "MOLLIE_API_KEY" not in settings_of("svc-crm")
    assert "SANDBOX_IN_PRODUCTION" in settings_of("svc-billing")
    assert settings_of("svc-crm")["FILES_DIR"].default == ".local/files"
    assert "MAIL_LISTEN" in settings_of("svc-support") and "MAIL_LISTEN" not in settings_of("svc-crm")


def test_every_variable_is_a_setting_of_the_program(build):
    for program, kind, name in workloads():
        unknown = set_names(build.environment(kind, name)) - set(settings_of(program))
        assert not unknown, f"{name}: {unknown}"


def test_every_setting_that_only_fits_one_machine_is_set(real):
    for program in PROGRAMS:
        given = set_names(real.environment("Deployment", program))
        for setting in settings_of(program).values():
            needed = setting.name in REQUIRED or ONE_MACHINE.search(setting.default or "")
            if needed and INSTEAD.get(setting.name) not in given:
                assert setting.name in given, f"{program}: {setting.name}"


def test_secrets_are_files_and_never_variables(build):
    for program, kind, name in workloads():
        environment = build.environment(kind, name)
        for setting in settings_of(program).values():
            if setting.secret:
                assert setting.name not in environment, f"{name}: {setting.name}"
                place = environment.get(f"{setting.name}_FILE", SECRETS + setting.name)
                assert place == SECRETS + setting.name
        assert "DATABASE_URL_FILE" in environment


def test_payments_are_real_or_none(real):
    billing = real.environment("Deployment", "svc-billing")
    assert {"MOLLIE_API_KEY_FILE", "MOLLIE_WEBHOOK_SECRETS_FILE"} <= set(billing)
    assert billing["ENVIRONMENT"] == "production" and "SANDBOX_IN_PRODUCTION" not in billing
    for program in PROGRAMS:
        environment = real.environment("Deployment", program)
        assert program == "svc-billing" or not any(name.startswith("MOLLIE") for name in environment), program


def test_no_address_is_left_with_a_name_in_it(build):
    for program, kind, name in workloads():
        for variable, value in build.environment(kind, name).items():
            assert "$(" not in value, f"{name}: {variable} uses a variable that is not named before it"


def test_addresses_lead_to_the_service_that_they_name(build):
    for program in PROGRAMS:
        for service, host, port, _, _ in build.calls(program):
            assert host == f"svc-{service}" and host in SERVICES
            assert port in [entry["port"] for entry in build.get("Service", host)["spec"]["ports"]]
            assert host != program, "nobody calls itself"


def test_the_gateway_calls_every_service(build):
    assert {host for _, host, *_ in build.calls("gateway")} == set(SERVICES)


def test_whoever_the_sources_call_is_a_peer(build):
    for program in SERVICES:
        sources = "\n".join(file.read_text() for file in (ROOT / program / "src").rglob("*.rs"))
        called = set(re.findall(r'(?:\bchannel\(\s*|Kind \{ service: |peers\s*\.\s*get\(\s*)"(\w+)"', sources))
        peers = {service for service, *_, what in build.calls(program) if what == "call"}
        assert called <= peers, program


# Calls that the other side answers from its own tables, without calling anybody, so that no circle can come of them: who
# refers to a client (`CountReferrers`, `EndWithdrawal`), and the files that a mail brings (`ListFiles`, `ReadFile`).
ANSWERED_ALONE = {
    ("svc-relations", "svc-billing"), ("svc-relations", "svc-crm"), ("svc-relations", "svc-support"),
    ("svc-relations", "svc-work"), ("svc-billing", "svc-work"), ("svc-support", "svc-work"),
}


def test_calls_have_no_cycle(build):
    """Events go the other way by design; calls must not, unless the other side answers alone."""
    calls = {
        program: {
            host for _, host, *_, what in build.calls(program)
            if what == "call" and (program, host) not in ANSWERED_ALONE
        }
        for program in PROGRAMS
    }
    done = set()
    while len(done) < len(PROGRAMS):
        free = {program for program in set(PROGRAMS) - done if calls[program] <= done}
        assert free, f"a cycle among {set(PROGRAMS) - done}"
        done |= free


def listeners_on_one_machine(program):
    """What deploy/up sets, asked of the script itself."""
    script = """
        cd "$0" && . deploy/up
        secret() { echo unused; }
        BIN_DIR="$1"
        binary_of() { echo show; }
        run_with_settings "$2" serve
    """
    shown = subprocess.run(
        ["bash", "-c", script, str(ROOT), str(ROOT / "deploy/k8s/tests/bin"), area(program)],
        capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
    ).stdout.strip()
    entries = [entry.split(";") for entry in shown.split(",") if entry]
    return {(address.split("=")[0], ";".join(["events", *types])) for address, *types in entries}


def test_events_go_where_they_go_on_one_machine(build):
    for program in SERVICES:
        here = {(service, what) for service, *_, what in build.calls(program) if what != "call"}
        assert here == listeners_on_one_machine(program), program


def documented():
    """The settings that docs/settings.md describes: the first cell of each row."""
    rows = re.findall(r"^\| (`[A-Z][^|]*) \|", (ROOT / "docs/settings.md").read_text(), re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([A-Z][A-Z0-9_]+)`", row)]
    assert len(names) == len(set(names)), "a setting is described twice"
    return set(names)


def test_the_document_describes_every_setting_and_no_other():
    of_product = [member for member in members() if not member.startswith("deploy/")]
    files = [file for member in of_product for file in (ROOT / member / "src").rglob("*.rs")]
    # In an attribute, or by a call.
    found = [re.findall(r'\benv(?:\s*=\s*|\()"([A-Z][A-Z0-9_]+)"', file.read_text()) for file in files]
    assert documented() == {name for names in found for name in names}
