#!/bin/bash
# start.sh [--no-build] [--limit SECONDS]: starts the cluster of docker-compose.yml and says "ready"
# once every process is and an object was written and read back through the load balancer. Anything
# else ends with 1, and with what is missing and why. Can be run again at any time.
set -euo pipefail
cd "$(dirname "$0")"
. ./lib.sh

build=yes
limit=600
while [ $# -gt 0 ]; do
    case "$1" in
    --no-build) build=no ;;
    --limit)
        [[ ${2:-} =~ ^[0-9]+$ ]] || fail "--limit needs a number of seconds"
        limit=$2
        shift
        ;;
    *)
        sed -n '2,4s/^# //p' "$0"
        [ "$1" = --help ] && exit 0
        exit 2
        ;;
    esac
    shift
done

# -- secrets and settings --------------------------------------------------------------------------

random_text() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }

make_env() {
    [ ! -e .env ] || return 0
    local id
    id=$(id -u)
    [ "$id" != 0 ] || id=10001 # the containers never run as root
    (
        umask 077
        cat >.env.new <<END
# Made by start.sh at its first start. Secrets of this cluster: keep it with the data.
FGW_ROOT_ACCESS_KEY=FGW$(random_text 8)
FGW_ROOT_SECRET_KEY=$(random_text 20)
FGW_CLUSTER_SECRET=$(random_text 32)
GRAFANA_PASSWORD=$(random_text 10)
FGW_UID=$id
FGW_GID=$id
# Ports on this machine and the address they are published on (FGW_BIND=0.0.0.0: all interfaces).
FGW_BIND=127.0.0.1
S3_PORT=8078
KURI1_PORT=8079
KURI2_PORT=8081
KURI1_OPS_PORT=9010
KURI2_OPS_PORT=9011
PROXY1_OPS_PORT=9012
PROXY2_OPS_PORT=9013
PROMETHEUS_PORT=9090
GRAFANA_PORT=3000
YSQL_PORT=25433
YCQL_PORT=19042
YUGABYTE_UI_PORT=15433
FGW_DATA_DIR=./data
END
    )
    mv .env.new .env
    say "made .env with new secrets"
}

# -- ports -----------------------------------------------------------------------------------------

# What listens on TCP port $1 here: "name (pid N)", "a process of another user", or nothing.
holder_of() {
    local port inode found pid
    if [ ! -r /proc/net/tcp ]; then
        ! command -v lsof >/dev/null ||
            lsof -nP -iTCP:"$1" -sTCP:LISTEN -Fpc 2>/dev/null | tr '\n' ' '
        return 0
    fi
    port=$(printf '%04X' "$1")
    # state 0A is LISTEN; column 2 is ADDRESS:PORT in hexadecimal, column 10 the socket's inode
    inode=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
        awk -v port=":$port" '$4 == "0A" && substr($2, length($2) - 4) == port {print $10; exit}')
    [ -n "$inode" ] || return 0
    found=$(find /proc/[0-9]*/fd -maxdepth 1 -lname "socket:\[$inode\]" 2>/dev/null | head -n 1 || true)
    pid=$(printf '%s' "$found" | cut -d/ -f3)
    if [ -n "$pid" ]; then
        printf '%s (pid %s)' "$(cat "/proc/$pid/comm" 2>/dev/null)" "$pid"
    else
        printf 'a process of another user (run as root to see it)'
    fi
}

# name, default, what it is for
PORTS="S3_PORT 8078 S3 (load balancer)
KURI1_PORT 8079 S3 of kuri-1
KURI2_PORT 8081 S3 of kuri-2
KURI1_OPS_PORT 9010 console of kuri-1
KURI2_OPS_PORT 9011 console of kuri-2
PROXY1_OPS_PORT 9012 console of proxy-1
PROXY2_OPS_PORT 9013 console of proxy-2
PROMETHEUS_PORT 9090 Prometheus
GRAFANA_PORT 3000 Grafana
YSQL_PORT 25433 YSQL of YugabyteDB
YCQL_PORT 19042 YCQL of YugabyteDB
YUGABYTE_UI_PORT 15433 console of YugabyteDB"

check_ports() {
    local name default what port holder container bad=0 seen=" "
    # what this cluster holds itself is no obstacle
    [ -z "$(compose ps -q 2>/dev/null)" ] || return 0
    while read -r name default what; do
        port=$(setting "$name" "$default")
        [[ $port =~ ^[0-9]+$ ]] && [ "$port" -ge 1 ] && [ "$port" -le 65535 ] ||
            fail "$name=$port in .env is no port"
        case $seen in *" $port "*)
            printf 'error: %s=%s (%s) is used twice in .env\n' "$name" "$port" "$what" >&2
            bad=1
            ;;
        esac
        seen="$seen$port "
        holder=$(holder_of "$port")
        [ -n "$holder" ] || continue
        container=$(docker ps --filter "publish=$port" --format '{{.Names}}' 2>/dev/null | head -n 1)
        printf 'error: port %s for %s is taken by %s; set %s in .env\n' "$port" "$what" \
            "${container:+container $container, }$holder" "$name" >&2
        bad=1
    done <<<"$PORTS"
    [ "$bad" = 0 ] || fail "nothing was started"
}

# -- data directories ------------------------------------------------------------------------------

make_data() {
    local data uid gid folder owner
    data=$(setting FGW_DATA_DIR ./data)
    uid=$(setting FGW_UID 10001)
    gid=$(setting FGW_GID 10001)
    for folder in "$data/kuri-1" "$data/kuri-2"; do
        mkdir -p "$folder"
        if [ "$(id -u)" = 0 ]; then
            chown "$uid:$gid" "$folder"
        fi
        chmod 0700 "$folder" 2>/dev/null || true
        owner=$(stat -c %u "$folder" 2>/dev/null || stat -f %u "$folder")
        [ "$owner" = "$uid" ] ||
            fail "$folder belongs to uid $owner, the containers run as uid $uid:" \
                "chown -R $uid:$gid $folder, or set FGW_UID and FGW_GID in .env"
    done
}

# -- waiting ---------------------------------------------------------------------------------------

# The reasons of a /readyz answer, one a line: "what: why".
reasons() {
    grep -oE '"what":"([^"\\]|\\.)*","why":"([^"\\]|\\.)*"' <<<"$1" |
        sed -E 's/^"what":"(.*)","why":"(.*)"$/    \1: \2/' || true
}

# Ends with 0 when SERVICE's /readyz at PORT says 200 before `end`.
wait_ready() {
    local service=$1 port=$2 answer status state shown= restarts=0
    say "waiting for $service ..."
    while :; do
        answer=$(curl -s -m 5 -w '\n%{http_code}' "http://$host:$port/readyz" || true)
        status=${answer##*$'\n'}
        if [ "$status" = 200 ]; then
            return 0
        fi
        state=$(state_of "$service")
        case $state in restarting*) restarts=$((restarts + 1)) ;; esac
        [ "$restarts" -lt 5 ] || state="ends again and again, ${state#restarting }"
        case $state in
        "" | exited* | dead* | ends*)
            printf 'error: %s ended (%s)\n' "$service" "${state:-no container}" >&2
            last_lines "$service"
            return 1
            ;;
        esac
        if [ "$status" = 503 ] && [ "$(reasons "$answer")" != "$shown" ]; then
            shown=$(reasons "$answer")
            say "  $service is not ready:"$'\n'"$shown"
        fi
        if [ "$SECONDS" -ge "$end" ]; then
            printf 'error: %s is not ready after %s s:\n' "$service" "$limit" >&2
            if [ "$status" = 503 ]; then
                reasons "$answer" >&2
            else
                printf '    http://%s:%s/readyz does not answer (container: %s)\n' "$host" "$port" \
                    "$state" >&2
            fi
            last_lines "$service"
            return 1
        fi
        sleep 1
    done
}

# -- an object, there and back ---------------------------------------------------------------------

# METHOD PATH [BODY FILE]; prints the body, then the status on a line of its own. The credentials go
# in by standard input, not into the process list.
s3() {
    local method=$1 path=$2 body=${3:-/dev/null} hash data=()
    hash=$(sha256sum "$body" | cut -d' ' -f1)
    [ $# -lt 3 ] || data=(--data-binary "@$body" -H 'Content-Type: application/octet-stream')
    printf 'user = "%s:%s"\n' "$(setting FGW_ROOT_ACCESS_KEY '')" \
        "$(setting FGW_ROOT_SECRET_KEY '')" |
        curl -sS -m 60 -K - -X "$method" --aws-sigv4 aws:amz:us-east-1:s3 \
            -H "x-amz-content-sha256: $hash" ${data[@]+"${data[@]}"} -w '\n%{http_code}' \
            "http://$host:$(setting S3_PORT 8078)$path"
}

expect() {
    local what=$1 wanted=$2 answer=$3
    [ "${answer##*$'\n'}" = "$wanted" ] || {
        printf 'error: %s through the load balancer: answer %s, wanted %s\n%s\n' "$what" \
            "${answer##*$'\n'}" "$wanted" "${answer%$'\n'*}" >&2
        last_lines lb
        exit 1
    }
}

probe() {
    local bucket answer body try
    bucket=fgw-start-$(random_text 6)
    body=$(mktemp)
    trap 'rm -f "$body"' RETURN
    random_text 4096 >"$body"
    # the load balancer asks its proxies every 2 s and lets none take part before that
    for ((try = 0; try < 30; try++)); do
        answer=$(s3 PUT "/$bucket" 2>&1 || true)
        case ${answer##*$'\n'} in 000 | 502 | 503) sleep 1 ;; *) break ;; esac
    done
    expect "making bucket $bucket" 200 "$answer"
    answer=$(s3 PUT "/$bucket/object" "$body" || true)
    expect "writing an object" 200 "$answer"
    answer=$(s3 GET "/$bucket/object" || true)
    expect "reading the object" 200 "$answer"
    [ "${answer%$'\n'*}" = "$(cat "$body")" ] || fail "the object read is not the one written"
    answer=$(s3 DELETE "/$bucket/object" || true)
    expect "deleting the object" 204 "$answer"
    answer=$(s3 DELETE "/$bucket" || true)
    expect "deleting bucket $bucket" 204 "$answer"
}

# -- all of it -------------------------------------------------------------------------------------

command -v curl >/dev/null || fail "curl is not installed; it asks /readyz and writes the test object"
curl --help all 2>/dev/null | grep -q -- --aws-sigv4 || fail "this curl is older than 7.75: no --aws-sigv4"
find_compose
make_env
check_ports
make_data

say "starting containers ..."
options=(-d)
[ "$build" = no ] || options+=(--build)
compose up "${options[@]}" || {
    for service in yugabytedb db-init; do
        state=$(state_of "$service")
        printf '%s: %s\n' "$service" "${state:-no container}" >&2
        case $state in "" | "exited 0" | running*) ;; *) last_lines "$service" ;; esac
    done
    fail "docker compose up failed; see above. ./stop.sh removes what was started"
}

host=$(setting FGW_BIND 127.0.0.1)
[ "$host" != 0.0.0.0 ] || host=127.0.0.1
end=$((SECONDS + limit))
wait_ready kuri-1 "$(setting KURI1_OPS_PORT 9010)" || exit 1
wait_ready kuri-2 "$(setting KURI2_OPS_PORT 9011)" || exit 1
wait_ready proxy-1 "$(setting PROXY1_OPS_PORT 9012)" || exit 1
wait_ready proxy-2 "$(setting PROXY2_OPS_PORT 9013)" || exit 1
probe

say "ready

  S3          http://$host:$(setting S3_PORT 8078)
  access key  $(setting FGW_ROOT_ACCESS_KEY '')
  secret key  FGW_ROOT_SECRET_KEY in $PWD/.env
  consoles    http://$host:$(setting KURI1_OPS_PORT 9010) (kuri-1) ... $(setting PROXY2_OPS_PORT 9013) (proxy-2)
  Prometheus  http://$host:$(setting PROMETHEUS_PORT 9090)
  Grafana     http://$host:$(setting GRAFANA_PORT 3000) (admin, GRAFANA_PASSWORD in .env)
  YugabyteDB  http://$host:$(setting YUGABYTE_UI_PORT 15433), YCQL $(setting YCQL_PORT 19042), YSQL $(setting YSQL_PORT 25433)

  ./stop.sh stops it."
