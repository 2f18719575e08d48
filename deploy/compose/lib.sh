# lib.sh: what start.sh and stop.sh share. Sourced; the current folder is that of docker-compose.yml.

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# `docker compose` (plugin) or docker-compose; `compose ARGS...` runs it afterwards.
find_compose() {
    command -v docker >/dev/null || fail "docker is not installed (or not in PATH)"
    if docker compose version >/dev/null 2>&1; then
        compose() { docker compose "$@"; }
    elif command -v docker-compose >/dev/null; then
        compose() { docker-compose "$@"; }
    else
        fail "docker has no compose plugin, and there is no docker-compose"
    fi
    local said
    said=$(docker version --format '{{.Server.Version}}' 2>&1) ||
        fail "the docker daemon does not answer: ${said##*$'\n'}"
}

# Settings of .env, as compose reads them: what is set in the environment wins.
setting() {
    local name=$1 default=$2 value
    if [ -n "${!name:-}" ]; then
        printf '%s' "${!name}"
        return
    fi
    value=$(sed -n "s/^$name=//p" .env 2>/dev/null | tail -n 1)
    printf '%s' "${value:-$default}"
}

# SERVICE running|exited|... and its exit code; nothing when it was never made.
state_of() {
    local id
    id=$(compose ps -a -q "$1" 2>/dev/null | head -n 1)
    [ -z "$id" ] || docker inspect --format '{{.State.Status}} {{.State.ExitCode}}' "$id"
}

last_lines() {
    printf -- '--- last lines of %s\n' "$1" >&2
    compose logs --no-color --tail 25 "$1" >&2 || true
}
