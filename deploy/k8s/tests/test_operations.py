"""Alerts and the dashboard speak of metrics that exist, Prometheus understands them, and each alert has its page.
PROMTOOL is Prometheus' own checker."""

import json
import os
import re
import subprocess

import pytest
import yaml
from conftest import K8S, PROGRAMS, ROOT, members

MONITORING = K8S / "components/monitoring"
RUNBOOKS = ROOT / "deploy/runbooks"
RULES = yaml.safe_load((MONITORING / "rules.yaml").read_text())["spec"]
ALL_RULES = [rule for group in RULES["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in ALL_RULES if "alert" in rule]
RECORDED = {rule["record"]: rule["expr"] for rule in ALL_RULES if "record" in rule}
DASHBOARD = json.loads((MONITORING / "dashboard.json").read_text())
# Not recorded by our programs, each with the labels that its source gives it.
OTHERS = {
    # Prometheus itself.
    "up": {"app_kubernetes_io_name", "namespace"},
    # postgres_exporter.
    "pg_replication_lag_seconds": {"namespace", "instance"},
    "pg_settings_max_connections": {"namespace", "instance"},
    "pg_stat_activity_count": {"namespace", "instance", "state", "usename", "application_name"},
    "pg_stat_activity_max_tx_duration": {"namespace", "instance", "state", "usename", "application_name"},
    "pg_stat_archiver_archived_count": {"namespace", "instance"},
    "pg_stat_archiver_failed_count": {"namespace", "instance"},
    # CloudNativePG's instances, and its plugin for backups.
    "barman_cloud_cloudnative_pg_io_last_available_backup_timestamp": {"namespace", "pod"},
    "cnpg_backends_max_tx_duration_seconds": {"namespace", "pod", "state", "usename", "application_name"},
    "cnpg_backends_total": {"namespace", "pod", "state", "usename", "application_name"},
    "cnpg_pg_replication_in_recovery": {"namespace", "pod"},
    "cnpg_pg_replication_is_wal_receiver_up": {"namespace", "pod"},
    "cnpg_pg_replication_lag": {"namespace", "pod"},
    "cnpg_pg_settings_setting": {"namespace", "pod", "name"},
    "cnpg_pg_stat_archiver_archived_count": {"namespace", "pod"},
    "cnpg_pg_stat_archiver_failed_count": {"namespace", "pod"},
    # The kubelet, and kube-state-metrics.
    "kube_cronjob_created": {"namespace", "cronjob"},
    "kube_cronjob_status_last_successful_time": {"namespace", "cronjob"},
    "kubelet_volume_stats_available_bytes": {"namespace", "persistentvolumeclaim"},
    "kubelet_volume_stats_capacity_bytes": {"namespace", "persistentvolumeclaim"},
    # Our own recording rules.
    **dict.fromkeys(RECORDED, {"namespace"}),
}
# Pages that are for no alert.
OTHER_PAGES = {"README", "RestoreDrill"}
# Labels that Prometheus adds to every series of a pod; the first by the PodMonitor's podTargetLabels.
ADDED = {"app_kubernetes_io_name", "namespace", "pod"}
NO_METRIC = {
    "and", "by", "group", "histogram_quantile", "increase", "label_replace", "label_values", "last_over_time", "le", "max",
    "min", "min_over_time", "offset", "on", "or", "predict_linear", "rate", "sum", "time", "topk", "unless",
}


def arguments(text, start):
    """The rest of a macro's arguments, up to the parenthesis that closes it."""
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start:end]


def metrics():
    """Name and labels of every metric that the sources record; a histogram has three names."""
    found = {}
    for folder in members():
        for file in (ROOT / folder / "src").rglob("*.rs"):
            text = file.read_text()
            for call in re.finditer(r'\b(counter|gauge|histogram)!\(\s*"(\w+)"', text):
                kind, name = call.groups()
                keys = set(re.findall(r'"(\w+)"\s*=>', arguments(text, call.end())))
                names = [name + end for end in ("_bucket", "_count", "_sum")] if kind == "histogram" else [name]
                for name in names:
                    found.setdefault(name, set()).update(keys | ADDED | ({"le"} if name.endswith("_bucket") else set()))
    return found


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions():
    for rule in ALL_RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


def used(expression):
    """Metrics of an expression, with the labels that it asks of each and those that it sums by."""
    grouped = {
        label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(",")
    }
    bare = re.sub(r'"[^"]*"|\bby \([^)]*\)', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    asked = dict.fromkeys(re.findall(r"(?<![\w$.:])[a-z_][\w:]*", bare), set())
    for name, matchers in re.findall(r"\b(\w+)\{([^}]*)\}", expression):
        asked[name] = asked.get(name, set()) | set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
    return {name: labels for name, labels in asked.items() if name not in NO_METRIC and name not in ADDED}, grouped


@pytest.mark.parametrize("title,expression", list(expressions()))
def test_every_metric_and_label_exists_in_the_sources(title, expression):
    known = metrics() | OTHERS
    asked, grouped = used(expression)
    # label_values(metric, label) names a label; label_replace makes one.
    made = set(re.findall(r'label_replace\(.*?"(\w+)", "\$1"', expression, re.DOTALL))
    plain = set(re.findall(r"label_values\(.*, (\w+)\)", expression))
    names = set(asked) - plain
    assert names, "an expression asks for something"
    for name in names:
        assert name in known, f"{name} is recorded nowhere"
        assert asked[name] <= known[name], f"{name} has no {asked[name] - known[name]}"
    assert (grouped | plain) - made <= set().union(*(known[name] for name in names))


def test_the_sources_were_read():
    found = metrics()
    assert {"operation", "status", "le"} <= found["http_request_seconds_bucket"]
    assert {"worker", "outcome"} <= found["worker_jobs_total"]
    assert "http_request_seconds" not in found


def test_the_programs_name_is_added_as_the_alerts_expect():
    monitor = yaml.safe_load((MONITORING / "pod-monitor.yaml").read_text())["spec"]
    assert monitor["podTargetLabels"] == ["app.kubernetes.io/name"]


def test_the_monitor_finds_the_pods(real):
    spec = real.get("PodMonitor", "administration")["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    for program in PROGRAMS:
        template, container = real.pod("Deployment", program)
        assert spec["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        assert endpoint["port"] in [port["name"] for port in container["ports"]]


def test_every_program_is_missed_when_it_is_gone():
    (rule,) = [rule for rule in ALERTS if rule["alert"] == "WorkloadDown"]
    for names in re.findall(r'app_kubernetes_io_name=~"([^"]*)"', rule["expr"]):
        assert all(re.fullmatch(names, program) for program in PROGRAMS)
        assert not re.fullmatch(names, "svc-somebody-else")


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_an_alert_says_where(rule):
    """Two installations may share a Prometheus. What is summed keeps the namespace; absent() would forget it."""
    groups = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
    assert all("namespace" in group.split(", ") for group in groups)
    sums = re.findall(r"\b(?:sum|max|min|group)\b(?! by)", rule["expr"])
    assert not sums and "absent" not in rule["expr"] and "without" not in rule["expr"]


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_a_part_of_a_few_is_no_alert(rule):
    """A ratio or a percentile of requests or jobs counts only where there are enough of them."""
    expression = rule["expr"]
    if "histogram_quantile" in expression or re.search(r"/ sum by .*rate\(", expression):
        assert re.search(r"and sum by .*\(rate\(\w+\[\w+\]\)\) > 0\.\d+", expression)
    for part in expression.split(") or ("):
        if "ratio_rate" in part:
            assert re.search(r"and namespace:http_requests:rate\w+ > 0\.\d+", part)


def test_the_error_budget_is_watched_over_two_windows_each():
    by_name = {rule["alert"]: rule for rule in ALERTS}
    for name, severity, windows in (
        ("ErrorBudgetBurns", "critical", [("14.4 * 0.001", "1h", "5m"), ("6 * 0.001", "6h", "30m")]),
        ("ErrorBudgetDrains", "warning", [("3 * 0.001", "1d", "2h"), ("0.001", "3d", "6h")]),
    ):
        parts = by_name[name]["expr"].split(") or (")
        assert by_name[name]["labels"]["severity"] == severity and len(parts) == len(windows)
        for part, (limit, *both) in zip(parts, windows):
            assert re.findall(r"ratio_rate(\w+) > ([\d.* ]+\d)", part) == [(window, limit) for window in both]
    for name, expression in RECORDED.items():
        window = re.search(r"rate(\w+)$", name)[1]
        assert set(re.findall(r"\[(\w+)\]", expression)) == {window}


def test_numbers_in_the_alerts_are_those_of_the_sources():
    partitions = re.search(r"PARTITIONS: u16 = (\d+)", (ROOT / "chassis/base/src/account.rs").read_text())[1]
    lease = re.search(r"lease: TimeDelta::seconds\((\d+)\)", (ROOT / "chassis/work/src/worker/timing.rs").read_text())[1]
    by_name = {rule["alert"]: rule["expr"] for rule in ALERTS}
    assert by_name["PartitionsIdle"].endswith(f"< {partitions}")
    assert by_name["LeaseAge"].endswith(f"> {2 * int(lease)}")


def test_every_alert_has_a_page_and_every_page_an_alert():
    names = [rule["alert"] for rule in ALERTS]
    assert len(set(names)) == len(names)
    for rule in ALERTS:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["runbook"] == f"deploy/runbooks/{rule['alert']}.md"
    assert {page.stem for page in RUNBOOKS.glob("*.md")} - OTHER_PAGES == set(names)
    index = (RUNBOOKS / "README.md").read_text()
    for name in names:
        text = (RUNBOOKS / f"{name}.md").read_text()
        assert text.startswith(f"# {name}\n"), name
        for heading in ("## What it means", "## Look", "## Do"):
            assert heading in text, f"{name}: {heading}"
        assert f"({name}.md)" in index, name


def test_panels_do_not_overlap_and_say_what_they_show():
    places = set()
    for panel in DASHBOARD["panels"]:
        grid = panel["gridPos"]
        columns, lines = range(grid["x"], grid["x"] + grid["w"]), range(grid["y"], grid["y"] + grid["h"])
        cells = {(x, y) for x in columns for y in lines}
        assert grid["x"] + grid["w"] <= 24 and not cells & places, panel["title"]
        places |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert all(panel["description"] and panel["targets"] for panel in panels())


def promtool(*arguments):
    return subprocess.run([os.environ.get("PROMTOOL", "promtool"), *map(str, arguments)], capture_output=True, text=True)


def test_prometheus_accepts_the_alerts(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(RULES))
    checked = promtool("check", "rules", rules)
    assert checked.returncode == 0 and f"{len(ALL_RULES)} rules found" in checked.stdout, checked.stdout + checked.stderr


def test_alerts_fire_when_they_should_and_not_before(tmp_path):
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    fired, silent = set(), set()
    for file in (K8S / "tests").glob("alerts*.yaml"):
        cases = file.read_text()
        (tmp_path / file.name).write_text(cases)
        tested = promtool("test", "rules", tmp_path / file.name)
        assert tested.returncode == 0, tested.stdout + tested.stderr
        for test in yaml.safe_load(cases)["tests"]:
            for series in test["input_series"]:
                assert "namespace=" in series["series"]
            for case in test["alert_rule_test"]:
                (fired if case.get("exp_alerts") else silent).add(case["alertname"])
    assert fired == {rule["alert"] for rule in ALERTS}, "each alert is seen to fire"
    newer = {rule["alert"] for rule in ALERTS if rule["alert"].startswith(("Database", "ErrorBudget"))}
    # Of these two, others stay silent beside the one that fires.
    assert newer - silent <= {"DatabaseConnections", "DatabaseDisk"}, "and not to fire"


def test_prometheus_accepts_the_dashboards_expressions(tmp_path):
    """As rules, with Grafana's variables filled in."""
    rules = []
    for number, panel in enumerate(panels()):
        for target in panel["targets"]:
            expression = target["expr"]
            for variable, value in (("$__rate_interval", "1m"), ("$namespace", "n"), ("$operation", ".*")):
                expression = expression.replace(variable, value)
            assert "$" not in expression
            rules.append({"record": f"panel:{number}_{target['refId']}", "expr": expression})
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0 and f"{len(rules)} rules found" in checked.stdout, checked.stdout + checked.stderr


def log_texts(page):
    """What a page says to look for in a log: the words of a grep, and words in backticks that are no command."""
    text = page.read_text()
    phrases = re.findall(r"`([a-z]+(?: [a-z]+){2,})`", text)
    return set(re.findall(r"grep '([\w ]+)'", text)) | {words for words in phrases if not words.startswith("kubectl ")}


def test_what_pages_say_to_look_for_in_a_log_is_logged():
    files = [file for member in members() for file in (ROOT / member / "src").rglob("*.rs")]
    sources = re.sub(r"\s+", " ", " ".join(file.read_text() for file in files))
    texts = {(page.stem, text) for page in RUNBOOKS.glob("*.md") for text in log_texts(page)}
    assert len(texts) >= 5, "the pages were read"
    assert not {(page, text) for page, text in texts if text not in sources}
