"""Rolling out and making secrets, with a kubectl that only writes down what it is asked."""

import base64
import os
import re
import subprocess

import yaml
from conftest import PROGRAMS, ROOT, SECRETS, migration

ROLLOUT, MAKE_SECRETS = ROOT / "deploy/k8s/rollout", ROOT / "deploy/k8s/secrets"


def rollout(tmp_path, conditions, *arguments):
    """Runs it; gives its outcome and what kubectl was asked, a word for each call."""
    fake = tmp_path / "kubectl"
    fake.write_text(f"""#!/bin/sh
printf '%s\\n' "$*" >>{tmp_path}/calls
case "$1" in
kustomize) printf 'kind: Job\\nkind: Job\\n' ;;
get) printf '{conditions}' ;;
logs) echo "what went wrong" ;;
esac
""")
    fake.chmod(0o755)
    environment = os.environ | {"KUBECTL": str(fake), "MIGRATE_WITHIN": "1"}
    done = subprocess.run([ROLLOUT, *arguments], capture_output=True, text=True, env=environment)
    calls = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
    return done, calls


def kinds(calls):
    known = {
        r"^kustomize ": "build",
        r"^apply .*component notin \(migrate, serve\)": "settings",
        r"^delete job .*component=migrate": "delete old migrations",
        r"^apply .*component=migrate": "migrations",
        r"^get job": "look",
        r"^logs": "log",
        r"^apply .*component=serve": "programs",
        r"^rollout status deployment -n administration ": "wait",
    }
    names = [next((name for form, name in known.items() if re.search(form, call)), call) for call in calls]
    return [name for place, name in enumerate(names) if name != "look" or names[place - 1] != "look"]


COMPLETE = r"migrate-crm SuccessCriteriaMet Complete\nmigrate-work Complete\n"


def test_settings_come_before_migrations_and_migrations_before_programs(tmp_path):
    done, calls = rollout(tmp_path, COMPLETE, "production")
    assert done.returncode == 0, done.stderr
    order = ["build", "settings", "delete old migrations", "migrations", "look", "programs", "wait"]
    assert kinds(calls) == order


def test_a_failed_migration_leaves_the_programs_alone(tmp_path):
    done, calls = rollout(tmp_path, r"migrate-crm FailureTarget Failed\nmigrate-work \n", "production")
    assert done.returncode != 0
    assert "what went wrong" in done.stderr
    assert kinds(calls)[-2:] == ["look", "log"]


def test_a_cluster_that_does_not_say_that_all_is_migrated_gets_no_programs(tmp_path):
    for conditions in ("", r"migrate-crm Complete\nmigrate-work SuccessCriteriaMet\n"):
        done, calls = rollout(tmp_path, conditions, "production")
        assert done.returncode != 0 and "not all migrated" in done.stderr
        assert "programs" not in kinds(calls)


def test_stages_can_be_run_one_by_one(tmp_path):
    _, calls = rollout(tmp_path, COMPLETE, "staging", "prepare")
    assert kinds(calls) == ["build", "settings"]


def test_a_stage_that_does_not_exist_does_nothing(tmp_path):
    done, calls = rollout(tmp_path, COMPLETE, "staging", "prepare", "everything")
    assert done.returncode != 0 and calls == []


def test_labels_divide_an_overlay_into_the_stages(build):
    """What kubectl would choose by them."""
    for document in build.documents:
        stage = document["metadata"].get("labels", {}).get("app.kubernetes.io/component")
        stages = {"Job": "migrate", "Deployment": "serve", "CronJob": "compact-log"}
        assert stage == stages.get(document["kind"])


def made_secrets(tmp_path, *arguments, **environment):
    subprocess.run(
        [MAKE_SECRETS, "--out", tmp_path, *arguments], check=True, capture_output=True, env=os.environ | environment)
    documents = [document for document in yaml.safe_load_all((tmp_path / "secrets.yaml").read_text()) if document]
    return {
        document["metadata"]["name"]: {key: base64.b64decode(value).decode() for key, value in document["data"].items()}
        for document in documents
    }


def test_the_secrets_have_what_the_pods_look_for(builds, tmp_path):
    outside = {"SMTP_URL": "smtps://me:it's@mail:465", "MOLLIE_API_KEY": "live_it's"}
    secrets = made_secrets(tmp_path, "administration", "db.example", **outside)
    assert secrets["outside"]["SMTP_URL"] == "smtps://me:it's@mail:465"
    assert secrets["svc-billing"]["MOLLIE_API_KEY"] == "live_it's" and not secrets["svc-billing"]["MOLLIE_WEBHOOK_SECRETS"]
    for build in builds.values():
        for program in PROGRAMS:
            for kind, name in (("Deployment", program), ("Job", migration(program))):
                template, _ = build.pod(kind, name)
                sources = template["spec"]["volumes"][0]["projected"]["sources"]
                mounted = [source["secret"]["name"] for source in sources if "secret" in source]
                # cert-manager makes those.
                names = [name for name in mounted if not name.endswith("-tls")]
                files = {SECRETS + key for name in names for key in secrets[name]}
                environment = build.environment(kind, name)
                asked = {value for variable, value in environment.items() if variable.endswith("_FILE")}
                assert asked == files, name


def test_every_role_has_a_password_of_its_own_in_both_files(tmp_path):
    secrets = made_secrets(tmp_path, "--port", "6432", "administration", "db.example")
    statements = re.findall(r"alter role (\w+) password '(\w+)';", (tmp_path / "passwords.sql").read_text())
    assert len({password for _, password in statements}) == len(statements) == 2 * len(PROGRAMS)
    addresses = {secret["DATABASE_URL"] for secret in secrets.values() if "DATABASE_URL" in secret}
    place = "db.example:6432/administration?sslmode=verify-full"
    assert addresses == {f"postgres://{role}:{password}@{place}" for role, password in statements}
    for file in ("secrets.yaml", "passwords.sql"):
        assert (tmp_path / file).stat().st_mode & 0o777 == 0o600


def test_secrets_are_not_overwritten(tmp_path):
    made_secrets(tmp_path, "administration", "db.example")
    command = [MAKE_SECRETS, "--out", tmp_path, "administration", "db.example"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode != 0 and "exists already" in again.stderr
