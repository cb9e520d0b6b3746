# What the three applications of the access pass share: a deployment in an empty
# folder, its processes, a subscriber. Sourced by their run.sh; needs `alpheus`.
set -eu
EPOCH=${EPOCH:-15}
ISSUER=${ISSUER:-7501}
VERIFIER=${VERIFIER:-7502}
GATEWAY=${GATEWAY:-7443}
SERVICE=${SERVICE:-8000}
LOCAL=${LOCAL:-7600}
HERE=$(cd "$(dirname "$0")" && pwd)
WORK=$(mktemp -d)
cd "$WORK"
trap 'kill $(jobs -p) 2> /dev/null || true; rm -rf "$WORK"' EXIT

# deployment [OPTIONS OF INIT]: keys, issuer, verifier.
deployment() {
    alpheus ca init pki
    for role in issuer verifier gateway; do
        alpheus ca issue pki --role $role --name $role
    done
    alpheus pass init deployment --issuer https://localhost:$ISSUER --gateway https://localhost:$GATEWAY \
        --authority pki/ca.pem --epoch "$EPOCH" "$@" > fingerprint
    (umask 077; alpheus pass account ada --accounts accounts > ada.secret)
    alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts \
        --state issuer --api 127.0.0.1:$ISSUER --new-state 2> issuer.log &
    alpheus pass verifier --identity pki/verifier --deployment deployment \
        --state verifier --api 127.0.0.1:$VERIFIER 2> verifier.log &
    ready issuer.log
    ready verifier.log
}

# gateway: before the service.
gateway() {
    alpheus pass gateway --identity pki/gateway --card deployment/card.json \
        --verifiers https://localhost:$VERIFIER --upstream http://127.0.0.1:$SERVICE \
        --api 127.0.0.1:$GATEWAY 2> gateway.log &
    ready gateway.log
}

# subscriber: ada's pass.
subscriber() {
    (umask 077; head -c 32 /dev/urandom | base64 > ada.key)
    alpheus pass client join --card deployment/card.json --account ada --secret-file ada.secret \
        --pass ada.pass --key-file ada.key > /dev/null
    alpheus pass client fetch --pass ada.pass --key-file ada.key > /dev/null
}

# client: logs in, and serves the session to this machine.
client() {
    alpheus pass client run --pass ada.pass --key-file ada.key --local 127.0.0.1:$LOCAL \
        --local-secret ada.local > /dev/null 2> client.log &
    ready client.log
    until [ -s ada.local ]; do sleep 0.1; done
}

# get PATH: as any program on ada's machine would. A session may end at an epoch's border, on a slow
# machine; the next one begins with the next epoch, and 503 says so.
get() {
    curl -sf --retry 9 --retry-delay 1 -H "Alpheus-Local: $(cat ada.local)" "http://127.0.0.1:$LOCAL$1"
}

# ready LOG: a process serves.
ready() {
    until grep -q 'serving at' "$1" 2> /dev/null; do sleep 0.1; done
}
