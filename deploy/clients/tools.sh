# shellcheck shell=bash
# The generators and linters of this folder, under .local/clients. Sourced by the scripts beside it, after lib.sh.

CLIENTS="$ROOT/.local/clients"
# shellcheck disable=SC2034 # for the scripts
DOCUMENT="$ROOT/gateway/openapi.json"

# node_tools: the programs of package-lock.json in .local/clients/node_modules; false when they cannot be had here.
node_tools() {
    # Debian's node has no npm.
    install_tool node nodejs && install_tool npm npm || return 1
    node -e 'process.exit(process.versions.node.split(".")[0] >= 18 ? 0 : 1)' || return 1
    with_lock "$CLIENTS.lock" make_node_tools
}

make_node_tools() {
    local wanted
    wanted="$(cat "$ROOT"/deploy/clients/{package-lock.json,.npmrc} | cksum)"
    if [ "$(cat "$CLIENTS/made" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    say "Installing the generators and linters of deploy/clients into .local/clients"
    mkdir -p "$CLIENTS"
    rm -f "$CLIENTS/made"
    cp "$ROOT"/deploy/clients/{package.json,package-lock.json,.npmrc} "$CLIENTS/"
    if ! (cd "$CLIENTS" && npm ci --loglevel error) >&2; then
        # What is wrong with the lock file is no reason to be skipped.
        (cd "$CLIENTS" && npm view typescript version) >/dev/null 2>&1 && die "npm cannot install deploy/clients/package-lock.json"
        return 1
    fi
    printf '%s\n' "$wanted" >"$CLIENTS/made"
}

# node_tool NAME ARGUMENT…: one of them, without a word to whoever made it.
node_tool() {
    REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_UPDATE_NOTICE=true SCARF_ANALYTICS=false NO_COLOR=1 \
        "$CLIENTS/node_modules/.bin/$1" "${@:2}"
}

# python_client_tools: openapi-python-client in .local/clients-python; false when it cannot be had here.
python_client_tools() {
    with_lock "$CLIENTS-python.lock" make_venv "$CLIENTS-python" "$ROOT/deploy/clients/requirements.txt"
}
