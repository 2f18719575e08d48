#!/bin/bash
# stop.sh [--clean]: stops the cluster of docker-compose.yml and removes its containers. Requests in
# flight are finished first (up to 30 s a process). Data stay; --clean removes them too, with the
# volumes of the database, and .env. Ends with 1 when something did not end well.
set -euo pipefail
cd "$(dirname "$0")"
. ./lib.sh

clean=no
case "${1:-}" in
"") ;;
--clean) clean=yes ;;
*)
    sed -n '2,4s/^# //p' "$0"
    [ "$1" = --help ] && exit 0
    exit 2
    ;;
esac
find_compose
[ -e .env ] || fail "there is no .env here: nothing was started from this folder"

bad=0
say "stopping ..."
compose stop || bad=1
for service in kuri-1 kuri-2 proxy-1 proxy-2; do
    state=$(state_of "$service")
    case $state in
    "" | "exited 0" | created*) ;;
    *)
        printf 'error: %s did not end with 0: %s\n' "$service" "$state" >&2
        last_lines "$service"
        bad=1
        ;;
    esac
done

options=(--remove-orphans)
[ "$clean" = no ] || options+=(--volumes)
compose down "${options[@]}" || bad=1
left=$(compose ps -a -q 2>/dev/null || true)
[ -z "$left" ] || {
    printf 'error: containers are left: %s\n' "${left//$'\n'/ }" >&2
    bad=1
}
[ "$bad" = 0 ] || fail "not everything ended well; nothing of the data was removed"

if [ "$clean" = yes ]; then
    data=$(setting FGW_DATA_DIR ./data)
    rm -rf "$data/kuri-1" "$data/kuri-2" || fail "data of another user are left in $data"
    rmdir "$data" 2>/dev/null || true
    rm -f .env
    say "stopped, data removed"
else
    say "stopped; data and .env are kept (./stop.sh --clean removes them)"
fi
