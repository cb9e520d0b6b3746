#!/bin/sh
# What `make dist` has left is installed on bare Debian systems without Rust, in chroots. One has the service, one has
# three controllers, meters and the analyst. Units are started without systemd: the command of ExecStart, as the
# unit's user, without capabilities. It prints the seconds from `apt install` to the first window. Then the service's
# system is booted in a container, and systemd itself starts the unit in its sandbox. A third system has the program
# alone: it prints the seconds from `apt install` to the first answer that `alpheus init` gives for the guide's file.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "error: only root can create root file systems" >&2; exit 1; }
for tool in debootstrap umoci systemd-analyze systemd-nspawn curl python3; do
  command -v "$tool" >/dev/null || { echo "error: this machine lacks $tool; make packages installs it" >&2; exit 1; }
done
DIST=$PWD/target/dist
BARE=$PWD/target/bare
PORT=${PORT:-27400}
# Never of an earlier commit, nor of changes that no commit has.
COMMIT=$(git describe --always --dirty || true)
case $COMMIT in
  '' | *-dirty) make dist ;;
  *) [ "$(cat target/dist-build/commit 2>/dev/null)" = "$COMMIT" ] || make dist ;;
esac
WORK=$(mktemp -d)
PIDS=

finish() {
  for pid in $PIDS; do kill "$pid" 2>/dev/null || true; done
  wait
  for machine in service homes own; do umount "$WORK/$machine/proc" 2>/dev/null || true; done
  rm -rf "$WORK"
}
trap finish EXIT
failed() { echo "FAILED: $*" >&2; tail -n 20 "$WORK"/*.log >&2 || true; exit 1; }

# A Debian with nothing but what apt needs, from the mirror that this machine is set up for.
bare() {
  [ -f "$BARE/ready" ] && return
  rm -rf "$BARE"
  release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016 # apt-get fills it in
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "CODENAME: $release" | head -n 1)
  debootstrap --variant=minbase "$release" "$BARE" "$mirror" >"$WORK/debootstrap.log" || failed debootstrap
  touch "$BARE/ready"
}

machine() {
  cp -a "$BARE" "$WORK/$1"
  cp /etc/resolv.conf "$WORK/$1/etc/resolv.conf"
  mount -t proc proc "$WORK/$1/proc"
  in_machine "$1" "apt-get update -qq"
  mkdir "$WORK/$1/packages"
  cp "$DIST"/*.deb "$WORK/$1/packages"
}
in_machine() { chroot "$WORK/$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ DEBIAN_FRONTEND=noninteractive sh -ec "$2"; }
install() { in_machine "$1" "cd /packages; apt-get install -qq --no-install-recommends $2 >/dev/null 2>&1"; }

# start MACHINE ROLE LOG [VARIABLE=VALUE ...]: the unit's command as its user.
start() {
  place=$WORK/$1; role=$2; log=$WORK/$3.log; shift 3
  unit=$place/usr/lib/systemd/system/alpheus-$role.service
  user=$(sed -n 's/^User=//p' "$unit")
  # shellcheck disable=SC2046
  chroot "$place" setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs --bounding-set=-all \
    env -i PATH=/usr/bin "$@" $(sed -n 's/^ExecStart=//p' "$unit") >"$log" 2>&1 &
  PIDS="$PIDS $!"
}
healthy() {
  tries=0
  until curl --silent --fail --output /dev/null "http://127.0.0.1:$1/healthz"; do
    tries=$((tries + 1)); [ "$tries" -lt 600 ] || failed "$2 is not ready"; sleep 0.1
  done
}

street() {
  mkdir "$WORK/homes/street"
  cat >"$WORK/homes/street/street.sh" <<EOF
cd /street
alpheus ca init pki
alpheus ca issue pki --role server --name service
alpheus ca issue pki --role consumer --name analyst
for home in a b c; do
  own=/var/lib/alpheus-controller/\$home
  alpheus ca issue pki --role controller --name guard-\$home
  alpheus ca issue pki --role owner --name owner-\$home
  alpheus ca issue pki --role producer --name meter-\$home
  mkdir \$own
  mv pki/guard-\$home \$own/identity
  (umask 077; head -c 32 /dev/urandom | base64 >\$own/key-file)
  alpheus controller init --identity \$own/identity --state \$own/state --key-file \$own/key-file --ca pki
  chown -R alpheus-controller: \$own
done
EOF
  in_machine homes "sh -e /street/street.sh" >"$WORK/street.log" 2>&1 || failed "the street is not set up"
  mv "$WORK/homes/street/pki/service" "$WORK/service/var/lib/alpheus-server/identity"
  in_machine service "chown -R alpheus-server: /var/lib/alpheus-server"
  for machine in service homes; do
    in_machine "$machine" "cp /usr/share/alpheus/examples/household/schema.yaml /etc/alpheus/schema.yaml"
  done
  sed -i "s/0.0.0.0:7400/127.0.0.1:$PORT/; s/127.0.0.1:7490/127.0.0.1:$((PORT + 90))/" "$WORK/service/etc/alpheus/server.toml"
}

processes() {
  start service server server
  server=$!
  healthy $((PORT + 90)) "the service"
  number=1
  for home in a b c; do
    own=/var/lib/alpheus-controller/$home
    start homes controller "guard-$home" ALPHEUS_IDENTITY=$own/identity ALPHEUS_STATE=$own/state \
      ALPHEUS_KEY_FILE=$own/key-file ALPHEUS_SERVER="https://127.0.0.1:$PORT" \
      ALPHEUS_API=127.0.0.1:$((PORT + number)) ALPHEUS_LISTEN=127.0.0.1:$((PORT + 90 + number))
    healthy $((PORT + 90 + number)) "controller $home"
    tries=0
    until in_machine homes "cd /street; alpheus owner add --identity pki/owner-$home --controller https://127.0.0.1:$((PORT + number)) \
      --schema /etc/alpheus/schema.yaml --policies /usr/share/alpheus/examples/household/policies.yaml \
      --producer meter-$home --device $home.device >$home.stream" >"$WORK/owner-$home.log" 2>&1; do
      tries=$((tries + 1)); [ "$tries" -lt 60 ] || failed "owner $home"; sleep 0.5
    done
    (while sleep 1; do echo "{\"power\": $((number * 500))}"; done) | chroot "$WORK/homes" sh -c "cd /street; exec alpheus produce \
      --identity pki/meter-$home --device $home.device --state meter-$home --schema /etc/alpheus/schema.yaml \
      --server https://127.0.0.1:$PORT --input -" >"$WORK/meter-$home.log" 2>&1 &
    PIDS="$PIDS $!"
    number=$((number + 1))
  done
}

window() {
  ask="cd /street; alpheus query --server https://127.0.0.1:$PORT --identity pki/analyst"
  tries=0
  until in_machine homes "$ask --query /usr/share/alpheus/examples/household/street.sql" >"$WORK/query.log" 2>&1; do
    tries=$((tries + 1)); [ "$tries" -lt 120 ] || failed "the query is refused"; sleep 0.5
  done
  tries=0
  until in_machine homes "$ask --results Street --format csv" 2>/dev/null | grep ',3,0,0,ok$' >"$WORK/row"; do
    tries=$((tries + 1)); [ "$tries" -lt 240 ] || failed "no window over three homes"; sleep 0.5
  done
}

units() {
  for unit in "$WORK"/"$1"/usr/lib/systemd/system/alpheus-*.service; do
    name=$(basename "$unit")
    said=$(systemd-analyze verify --man=no --root="$WORK/$1" "$name" 2>&1 | grep alpheus || true)
    [ -z "$said" ] || failed "$name: $said"
    systemd-analyze security --offline=true --root="$WORK/$1" --threshold=15 --no-pager "$name" >"$WORK/security.log" \
      || failed "$name may do too much"
    grep Overall "$WORK/security.log"
  done
}

# systemd starts the service's unit. The kernel says whether the sandbox holds.
sandboxed() {
  kill "$server"; wait "$server" || true
  install service "systemd systemd-sysv" || failed "systemd on the service's machine"
  in_machine service "systemctl enable alpheus-server" >"$WORK/enable.log" 2>&1 || failed "the unit is not enabled"
  umount "$WORK/service/proc"
  systemd-nspawn --quiet --register=no --keep-unit --boot --directory="$WORK/service" </dev/null >"$WORK/systemd.log" 2>&1 &
  boot=$!
  PIDS="$PIDS $boot"
  healthy $((PORT + 90)) "the service under systemd"
  pid=$(pgrep -f '^/usr/bin/alpheus --config /etc/alpheus/server.toml server') || failed "the service does not run"
  for line in Seccomp:2 NoNewPrivs:1 CapEff:0000000000000000 CapBnd:0000000000000000; do
    tr -d '\t' <"/proc/$pid/status" | grep -q "^$line$" || failed "the sandbox lacks $line"
  done
  kill -HUP "$pid"
  healthy $((PORT + 90)) "the service after SIGHUP"
  [ "$pid" = "$(pgrep -f '^/usr/bin/alpheus --config /etc/alpheus/server.toml server')" ] || failed "SIGHUP has ended the service"
  kill "$boot"; wait "$boot" || true
  mount -t proc proc "$WORK/service/proc"
}

# From the package to an answer about a file of one's own. The file is the guide's, and made before the clock starts.
answer() {
  guide=docs/bring-your-data.md
  sed -n '/^python3 - > steps.csv <<END$/,/^END$/p' "$guide" | sed '1d;$d' | python3 - >"$WORK/own/steps.csv"
  [ "$(wc -l <"$WORK/own/steps.csv")" = 289 ] || failed "$guide no longer makes the file"
  from=$(date +%s)
  install own "./alpheus_*.deb" || failed "apt on a machine of one's own"
  in_machine own "alpheus init /steps.csv --yes --output /steps" >"$WORK/init.log" 2>&1 || failed "init gives no answer"
  answer=$(($(date +%s) - from))
  grep -q ',ok$' "$WORK/own/steps/answer.csv" || failed "init's answer has no window"
  echo "figure: first answer of init after apt install = $answer s"
  [ "$answer" -le 120 ] || failed "the first answer came after $answer s; two minutes are promised"
}

(cd "$DIST" && sha256sum --quiet --check SHA256SUMS)
bare
machine own
answer
machine service
machine homes
! in_machine homes "command -v cargo || command -v rustc || command -v alpheus" || failed "the system is not bare"

# Seconds count from here.
from=$(date +%s)
install service "./alpheus_*.deb ./alpheus-server_*.deb" || failed "apt on the service's machine"
install homes "./alpheus_*.deb ./alpheus-controller_*.deb" || failed "apt on the homes' machine"
installed=$(date +%s)
street
processes
window
window=$(($(date +%s) - from))
echo "packages: the first window: $(cat "$WORK/row")"
echo "figure: installed on two machines = $((installed - from)) s"
echo "figure: first window after apt install = $window s"
[ "$window" -le 120 ] || failed "the first window came after $window s; two minutes are promised"

# Each machine has what belongs to its role and nothing of the other.
[ -z "$(find "$WORK/service" -xdev -name '*alpheus-controller*' ! -path '*/packages/*' ! -path '*/man/*')" ] || failed "the service's machine has a controller's files"
[ -z "$(find "$WORK/homes" -xdev -name '*alpheus-server*' ! -path '*/packages/*' ! -path '*/man/*')" ] || failed "the controllers' machine has the service's files"
sandboxed
echo "systemd: the service's unit runs in its sandbox, and outlives SIGHUP"
in_machine service "apt-get purge -qq alpheus-server >/dev/null 2>&1; test -s /var/lib/alpheus-server/identity/tls.key" \
  || failed "removing a package has removed keys"

# Every role: its unit, which names units of systemd, and its settings.
install homes "systemd ./*.deb" || failed "all packages"
in_machine homes "alpheus check /etc/alpheus/*.toml /etc/alpheus/schema.yaml" >"$WORK/check.log" 2>&1 || failed "settings"
units homes

# The same program from the image, as its user, and from the tarball.
image=$(echo "$DIST"/*.oci)
umoci unpack --image "$image:$(basename "$image" | cut -d- -f2)" "$WORK/image" >"$WORK/umoci.log" 2>&1 || failed umoci
tar -xzf "$DIST"/alpheus-*-linux-gnu.tar.gz -C "$WORK/homes/opt"
cmp "$WORK/image/rootfs/usr/bin/alpheus" "$WORK/homes/usr/bin/alpheus"
cmp "$WORK/homes"/opt/alpheus-*/bin/alpheus "$WORK/homes/usr/bin/alpheus"
mkdir -p "$WORK/image/rootfs/dev"
[ -e "$WORK/image/rootfs/dev/urandom" ] || mknod -m 666 "$WORK/image/rootfs/dev/urandom" c 1 9
chroot --userspec=7400:7400 "$WORK/image/rootfs" /usr/bin/alpheus demo --check >"$WORK/image.log" 2>&1 || failed "the image's program"
in_machine homes "/opt/alpheus-*/bin/alpheus demo --check" >"$WORK/tarball.log" 2>&1 || failed "the tarball's program"
echo "image and tarball: the same program; its demo runs in both"
