#!/usr/bin/env bash
# A real small Kubernetes (1.20.2, one node) on this one Debian 12 machine (as root), for tests of the Kubernetes compute target.
# Nothing but apt: Debian's source package `kubernetes` is built with golang-1.19 (6 min on 2 cores), etcd and kubectl are Debian's.
#   kubernetes.sh build   fetch and build once into $KUBERNETES_UP_CACHE (400 MB of binaries; no package is installed; 3 GB free while it runs)
#   kubernetes.sh up      build if needed, then etcd, API server (RBAC, Node, ServiceAccount), controller manager, scheduler (10 s), and, if a
#                            Docker Engine answers at $DOCKER_HOST or the default socket, a kubelet on it (1-4 s more); without one pods stay Pending
#   eval "$(kubernetes.sh env)"   KUBECONFIG (cluster admin), and kubectl in PATH where the machine has none
#   kubernetes.sh down    stop what `up` started (by pid files), remove its containers (by label), mounts, address and state
# KUBERNETES_UP_CACHE  binaries (default /var/cache/kubernetes-up)     KUBERNETES_UP_DIR  state and *.log (default /tmp/kubernetes-up)
# KUBERNETES_UP_IP     default 10.96.0.1: a /32 put on `lo`; API server, Service `kubernetes` and node have it, so that pods reach the API as
#                      in any cluster; the first address of its /24, which is the Service range. Nothing listens on the machine's own addresses.
# Images are the engine's own: build or import them there and set imagePullPolicy: Never (docker.sh makes an engine and a base image).
# Checked, with kubectl 1.20 and 1.32: Deployment scaled 1-5-1; Job; pod delete and `kubectl drain`/uncordon with SIGTERM and grace; hostPath volume;
#   ReadWriteMany PV/PVC on hostPath (static PV) shared by pods; Secret as file and as variable; CPU and memory limits (OOMKilled); logs; exec -i;
#   httpGet readiness probe; pod to pod and host to pod by pod IP; hostNetwork; a ServiceAccount whose Role may create and delete pods, by its mounted
#   token against https://$KUBERNETES_SERVICE_HOST, from ordinary and hostNetwork pods (403 for what the Role lacks); made-up GPUs:
#   kubectl patch node local --subresource=status --type=json -p '[{"op":"add","path":"/status/capacity/nvidia.com~1gpu","value":"2"}]'  (kubectl >= 1.24)
# Limits: pods are on the engine's bridge (docker0); no kube-proxy and no cluster DNS: Services other than `kubernetes` have no address that works, and
#   each pod gets a harmless MissingClusterDNS event; `kubectl port-forward` needs socat; one node, named local; one cluster per engine (two kubelets
#   would end each other's pods; `up` refuses); a pod object goes 5-10 s after its process, now and then 40; eviction and image collection are off;
#   Jobs are batch/v1, CronJob and PodDisruptionBudget still v1beta1. Two changes to the source: OOM scores below 0 are 0 (a sandbox without
#   CAP_SYS_RESOURCE refuses them); reflect2 is Debian's 1.0.2 (the vendored 1.0.1 crashes the API server under this Go). Tried on cgroup v1, Docker 20.10.
set -euo pipefail
dir=${KUBERNETES_UP_DIR:-/tmp/kubernetes-up}
cache=${KUBERNETES_UP_CACHE:-/var/cache/kubernetes-up}
ip=${KUBERNETES_UP_IP:-10.96.0.1}   # an address on lo: API server :443, kubelet :10250, the `kubernetes` Service and the node all have it
lo=127.${ip#*.}                     # etcd and the health ports, which need no login
bin=$cache/bin engine=${DOCKER_HOST:-unix:///var/run/docker.sock} pause=kubernetes-up/pause:local podlabel=io.kubernetes.pod.uid
T0=$(date +%s.%N)
say() { printf '[%6.1fs] %s\n' "$(awk -v a="$(date +%s.%N)" -v b="$T0" 'BEGIN{print a-b}')" "$*" >&2; }
die() { echo "kubernetes.sh: $*" >&2; exit 1; }
build() {
  [ -e "$bin/version" ] && return
  [ "$(id -u)" = 0 ] || die "run as root"
  mkdir -p "$cache"; exec 9>"$cache/lock"; flock 9   # a second caller waits for the first
  [ -e "$bin/version" ] && { exec 9>&-; return; }
  local t=$SECONDS b=$cache/build
  say "building in $b, log $cache/build.log"
  ( trap 'rm -rf "$b"' EXIT; rm -rf "$b"; build_in "$b" ) >"$cache/build.log" 2>&1 &   # in the background: `set -e` holds there
  wait $! || { tail -20 "$cache/build.log" >&2; die "build failed"; }
  exec 9>&-
  say "built Kubernetes $(cat "$bin/version") in $((SECONDS - t)) s: $(du -sh "$bin" | cut -f1) in $bin"
}
build_in() { # folder (removed afterwards)
  set -x
  local b=$1 v src
  mkdir -p "$b"/{lists/partial,apt/archives/partial,dl,root,go/src/k8s.io/kubernetes,go/src/pause,out,tmp} "$bin"
  cd "$b/dl"   # Debian's own sources of this machine, once as deb and once as deb-src, with lists of their own
  fmt='deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(REPO_URI) $(RELEASE) $(COMPONENT)'
  sources() { apt-get indextargets --format "$fmt" 'Created-By: Packages' 'Origin: Debian' 'Component: main' | sort -u | sed 'p;s/^deb /deb-src /'; }
  sources >"$b/sources.list"
  [ -s "$b/sources.list" ] || { apt-get update -qq; sources >"$b/sources.list"; }
  apt=(apt-get -qq -o Dir::Etc::SourceList="$b/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$b/lists" -o Dir::Cache="$b/apt" -o APT::Sandbox::User=root)
  "${apt[@]}" update
  "${apt[@]}" download golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev etcd-server kubernetes-client
  "${apt[@]}" source --download-only kubernetes
  for d in *.deb; do dpkg -x "$d" "$b/root"; done
  v=$(echo kubernetes_*.orig.tar.gz | sed -E 's/.*[_y]([0-9.]+)\.orig\.tar\.gz/\1/')
  src=$b/go/src/k8s.io/kubernetes; tar -xzf kubernetes_*.orig.tar.gz -C "$src" --strip-components=1; cd "$src"
  rm -rf vendor/github.com/modern-go/reflect2   # 1.0.1 corrupts memory under Go >= 1.18 (modern-go/reflect2#26): a JSON list would crash the API server
  cp -rL "$b/root/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/
  # a container must not ask for an OOM score below the machine's own: needs CAP_SYS_RESOURCE, which a sandbox may lack
  sed -i 's/defaultSandboxOOMAdj int = -998/defaultSandboxOOMAdj int = 0/' pkg/kubelet/dockershim/docker_sandbox.go
  sed -i 's/guaranteedOOMScoreAdj int = -997/guaranteedOOMScoreAdj int = 0/' pkg/kubelet/qos/policy.go
  grep -q 'OOMAdj int = 0' pkg/kubelet/dockershim/docker_sandbox.go && grep -q 'OOMScoreAdj int = 0' pkg/kubelet/qos/policy.go
  export GOROOT=$b/root/usr/lib/go-1.19 GOPATH=$b/go GOCACHE=$b/gocache GOTMPDIR=$b/tmp GOENV=off GOFLAGS=-trimpath GOPROXY=off GO111MODULE=off CGO_ENABLED=0
  export PATH=$GOROOT/bin:$PATH
  # the one generated file that the source package lacks and the API server needs
  go build -o "$b/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  pkgs=$(grep -rl --include=*.go '+k8s:openapi-gen=true' pkg vendor/k8s.io staging/src/k8s.io | grep -v zz_generated | xargs -n1 dirname | sort -u \
    | sed 's,^staging/src/,vendor/,; s,^,k8s.io/kubernetes/,' | grep -v 'sample-\|code-generator\|/test' | sort -u | paste -sd,)
  "$b/openapi-gen" --logtostderr --go-header-file hack/boilerplate/boilerplate.generatego.txt -O zz_generated.openapi -p k8s.io/kubernetes/pkg/generated/openapi -i "$pkgs" -r "$b/violations" 2>&1 | tail -3
  local ld='-s -w' x
  for x in component-base/version client-go/pkg/version; do
    x=k8s.io/kubernetes/vendor/k8s.io/$x; ld+=" -X $x.gitVersion=v$v -X $x.gitMajor=1 -X $x.gitMinor=$(echo "$v" | cut -d. -f2)"
  done
  nice go build -ldflags "$ld" -o "$b/out/" ./cmd/kube-apiserver ./cmd/kube-controller-manager ./cmd/kube-scheduler ./cmd/kubelet
  printf 'package main\nimport ("os"; "os/signal"; "syscall")\nfunc main() { c := make(chan os.Signal, 1); signal.Notify(c, syscall.SIGTERM, syscall.SIGINT); <-c }\n' >"$GOPATH/src/pause/main.go"
  go build -ldflags '-s -w' -o "$b/out/pause" pause
  mv "$b"/out/* "$b/root/usr/bin/etcd" "$b/root/usr/bin/kubectl" "$bin/"; echo "$v" >"$bin/version"
}
alive() { local p; p=$(cat "$dir/$1.pid" 2>/dev/null) && grep -qaF "$dir/" "/proc/$p/cmdline" 2>/dev/null; }
start() { # name command... ; the command line names $dir, by which `alive` knows the process
  alive "$1" && return; local n=$1; shift
  setsid nohup "$@" >>"$dir/$n.log" 2>&1 </dev/null &
  echo $! >"$dir/$n.pid"
}
stop() { # name
  for _ in $(seq 100); do alive "$1" || return 0; kill "$(cat "$dir/$1.pid")" 2>/dev/null || true; sleep 0.1; done
  kill -9 "$(cat "$dir/$1.pid")"
}
until_ok() { # seconds what command...
  for _ in $(seq $(($1 * 5))); do "${@:3}" >/dev/null 2>&1 && return; sleep 0.2; done
  die "$2 did not become ready; see $dir/*.log"
}
kubectl() { "$bin/kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }
kubeconfig() { # token
  printf '%s\n' "apiVersion: v1" "kind: Config" "current-context: kubernetes-up" \
    "clusters: [{name: kubernetes-up, cluster: {server: 'https://$ip', certificate-authority-data: $(base64 -w0 "$dir/pki/ca.crt")}}]" \
    "users: [{name: u, user: {token: $1}}]" "contexts: [{name: kubernetes-up, context: {cluster: kubernetes-up, user: u}}]"
}
cert() { # name subject extensions
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -extfile <(echo "$3") -out "$1.crt" 2>/dev/null
}
pki() {
  mkdir -p -m 700 "$dir/pki"; cd "$dir/pki"
  openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=kubernetes-up -keyout ca.key -out ca.crt 2>/dev/null
  cert apiserver /CN=kube-apiserver "subjectAltName=IP:$ip,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  cert client /O=system:masters/CN=kube-apiserver-kubelet-client extendedKeyUsage=clientAuth
  openssl genrsa -out sa.key 2048 2>/dev/null
  local a k; a=$(openssl rand -hex 16) k=$(openssl rand -hex 16)
  printf '%s,admin,admin,"system:masters"\n%s,system:node:local,local,"system:nodes"\n' "$a" "$k" >tokens.csv
  (umask 077; kubeconfig "$k" >kubelet.conf; kubeconfig "$a" >"$dir/kubeconfig")
  cd /
}
up() {
  mkdir -p "$dir"; [ -s "$dir/kubeconfig" ] || pki
  ip addr show dev lo | grep -q "inet $ip/" || ip addr add "$ip/32" dev lo
  start etcd "$bin/etcd" --data-dir "$dir/etcd" --listen-client-urls "http://$lo:2379" --advertise-client-urls "http://$lo:2379" --listen-peer-urls "http://$lo:2380" --unsafe-no-fsync
  start apiserver "$bin/kube-apiserver" --etcd-servers="http://$lo:2379" --bind-address="$ip" --advertise-address="$ip" --secure-port=443 --insecure-port=0 --service-cluster-ip-range="${ip%.*}.0/24" \
    --tls-cert-file="$dir/pki/apiserver.crt" --tls-private-key-file="$dir/pki/apiserver.key" --kubelet-client-certificate="$dir/pki/client.crt" --kubelet-client-key="$dir/pki/client.key" --kubelet-preferred-address-types=InternalIP \
    --service-account-key-file="$dir/pki/sa.key" --service-account-signing-key-file="$dir/pki/sa.key" --service-account-issuer=https://kubernetes.default.svc \
    --token-auth-file="$dir/pki/tokens.csv" --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true
  until_ok 90 "the API server" kubectl get --raw /readyz
  start controller-manager "$bin/kube-controller-manager" --kubeconfig="$dir/kubeconfig" --service-account-private-key-file="$dir/pki/sa.key" --root-ca-file="$dir/pki/ca.crt" --use-service-account-credentials --pvclaimbinder-sync-period=2s --bind-address="$lo" --port=0 --leader-elect=false
  start scheduler "$bin/kube-scheduler" --kubeconfig="$dir/kubeconfig" --bind-address="$lo" --port=0 --leader-elect=false
  until_ok 60 "the default service account" sh -c "'$bin/kubectl' --kubeconfig '$dir/kubeconfig' get sa default -o 'jsonpath={.secrets[0].name}' | grep -q ."
  say "control plane up: Kubernetes $(cat "$bin/version") at https://$ip"
  alive kubelet || kubelet_up
  say "KUBECONFIG=$dir/kubeconfig"
}
kubelet_up() {
  if ! command -v docker >/dev/null || ! docker info >/dev/null 2>&1; then say "no Docker Engine answers at $engine: no node, pods stay Pending"; return; fi
  [ "$(cat "$dir/engine" 2>/dev/null)" = "$engine" ] || [ -z "$(docker ps -aq --filter label=$podlabel)" ] || die "the engine at $engine has pods of another kubelet, which would end each other: use another engine (DOCKER_HOST)"
  echo "$engine" >"$dir/engine"
  docker image inspect "$pause" >/dev/null 2>&1 || tar -C "$bin" -c pause | docker import -c 'ENTRYPOINT ["/pause"]' - "$pause" >/dev/null
  [ -e "$dir/sysctl.conf" ] || sysctl -e vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes >"$dir/sysctl.conf" 2>/dev/null
  cat >"$dir/kubelet.yaml" <<EOF
# YAML only with this line: a file that begins with a brace is read as JSON. No eviction, no image collection: disk and images are the engine's owner's.
{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, address: $ip, healthzBindAddress: $lo, readOnlyPort: 0, volumePluginDir: $dir/volumeplugins,
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $dir/pki/ca.crt}}, authorization: {mode: Webhook},
cgroupDriver: $(docker info -f '{{.CgroupDriver}}'), cgroupsPerQOS: false, enforceNodeAllocatable: [], failSwapOn: false, oomScoreAdj: 0, makeIPTablesUtilChains: false,
nodeStatusUpdateFrequency: 2s, syncFrequency: 10s, kubeAPIQPS: 50, kubeAPIBurst: 100, eventRecordQPS: 50, imageGCHighThresholdPercent: 100,
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}}
EOF
  start kubelet env AWS_EC2_METADATA_DISABLED=true "$bin/kubelet" --config="$dir/kubelet.yaml" --kubeconfig="$dir/pki/kubelet.conf" --hostname-override=local --node-ip="$ip" --root-dir="$dir/kubelet" --cert-dir="$dir/kubelet-pki" \
    --docker="$engine" --docker-endpoint="$engine" --pod-infra-container-image="$pause" --container-runtime-endpoint="unix://$dir/dockershim.sock" --experimental-dockershim-root-directory="$dir/dockershim"
  until_ok 90 "the node" kubectl wait --for=condition=Ready --timeout=1s node/local
  say "node ready on Docker Engine $(docker version -f '{{.Server.Version}}') at $engine"
}
down() {
  local n u; stop kubelet
  if [ -s "$dir/engine" ] && export DOCKER_HOST="$(cat "$dir/engine")" && docker info >/dev/null 2>&1; then
    docker ps -aq --filter label=$podlabel | xargs -r docker rm -f >/dev/null
    docker rmi "$pause" >/dev/null 2>&1 || true
  fi
  for n in scheduler controller-manager apiserver etcd; do stop "$n"; done
  awk -v d="$dir/" 'index($5, d) == 1 {print $5}' /proc/self/mountinfo | sort -r | while read -r u; do umount "$u"; done
  find /var/log/pods /var/log/containers -mindepth 1 \( -xtype l -o -type d -empty \) -delete 2>/dev/null || true   # the kubelet's links to logs of the engine
  [ -s "$dir/sysctl.conf" ] && sysctl -q -e -p "$dir/sysctl.conf" || true
  ip addr del "$ip/32" dev lo 2>/dev/null || true
  rm -rf --one-file-system "$dir"; say "stopped"
}
case "${1:-}" in
  build) build; say "Kubernetes $(cat "$bin/version") is in $bin" ;;
  up) build; up ;;
  env) echo "export KUBECONFIG=$dir/kubeconfig"; type -P kubectl >/dev/null || echo "export PATH=\$PATH:$bin" ;;
  down) down ;;
  *) sed -n '/^#!/d;/^#/!q;p' "$0" >&2; exit 2 ;;
esac
