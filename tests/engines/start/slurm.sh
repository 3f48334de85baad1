#!/usr/bin/env bash
# A real Slurm cluster of N nodes on this one Debian machine (as root), .
#   slurm.sh up [N]   install if missing, start munged, slurmctld and N slurmd (n1..nN); about 20 s the first time, 5 s after
#   slurm.sh env      prints the export line that sbatch, squeue, scancel and sinfo need
#   slurm.sh down     stop what `up` started
# State is below $SLURM_UP_DIR (default /tmp/slurm-up). All nodes are this machine, so they share its file system, as a real cluster's do.
set -euo pipefail
dir=${SLURM_UP_DIR:-/tmp/slurm-up}
conf=$dir/slurm.conf
stop() { # by the pid files of this cluster only
  for f in "$dir"/slurmctld.pid "$dir"/slurmd-*.pid; do [ -f "$f" ] && kill "$(cat "$f")" 2>/dev/null || true; done
  if [ -f "$dir/started-munged" ] && [ -f /run/munge/munged.pid ]; then kill "$(cat /run/munge/munged.pid)" 2>/dev/null || true; rm -f "$dir/started-munged"; fi
}
case "${1:-}" in
  env) echo "export SLURM_CONF=$conf" ;;
  down) stop ;;
  up)
    n=${2:-3}
    if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then
      apt-get update -qq >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm slurmctld slurmd munge >&2
    fi
    mkdir -p "$dir" "$dir/state" /run/munge
    for i in $(seq "$n"); do mkdir -p "$dir/spool-n$i"; done
    host=$(hostname -s)
    cat >"$conf" <<EOF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=15
NodeName=n[1-$n] NodeHostname=$host NodeAddr=127.0.0.1 Port=[26821-$((26820 + n))] CPUs=$(nproc) RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=n[1-$n] Default=YES MaxTime=INFINITE State=UP
PartitionName=spot Nodes=n[1-$n] MaxTime=INFINITE State=UP PreemptMode=OFF
EOF
    [ -s /etc/munge/munge.key ] || /usr/sbin/mungekey
    if ! munge -n >/dev/null 2>&1; then
      chown -R munge: /run/munge /etc/munge /var/lib/munge /var/log/munge
      su -s /bin/bash munge -c /usr/sbin/munged && touch "$dir/started-munged"
    fi
    export SLURM_CONF=$conf
    [ -f "$dir/slurmctld.pid" ] && kill -0 "$(cat "$dir/slurmctld.pid")" 2>/dev/null || slurmctld -f "$conf"
    for i in $(seq "$n"); do
      [ -f "$dir/slurmd-n$i.pid" ] && kill -0 "$(cat "$dir/slurmd-n$i.pid")" 2>/dev/null || slurmd -f "$conf" -N "n$i"
    done
    for _ in $(seq 60); do sinfo -h -o %T 2>/dev/null | grep -qE 'idle|mixed|alloc' && exit 0; sleep 0.5; done
    echo "slurm.sh: no node became idle; see $dir/slurmctld.log" >&2; exit 1 ;;
  *) sed -n 2,6p "$0" >&2; exit 2 ;;
esac
