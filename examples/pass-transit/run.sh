#!/usr/bin/env bash
# A transit pass: a code on a screen opens a turnstile, once, for its epoch and three more.
. "$(dirname "$0")/../pass-setup.sh"
deployment --ahead 3
alpheus ca issue pki --role gateway --name turnstile
subscriber
scan() {
    alpheus pass scan --identity pki/turnstile --card deployment/card.json --verifiers https://localhost:$VERIFIER "$@"
}
code() {
    alpheus pass client code --pass ada.pass --key-file ada.key "$@"
}
# A verifier whose store is new waits out the epochs of codes that it may have forgotten.
until code > shown 2> refused && scan "$(cat shown)" 2> refused; do sleep 0.5; done
code --qr
# A photograph of it, a second later, at another turnstile or the same.
scan "$(cat shown)" 2> refused || echo "a copy: $(grep -o 'the code was used already' refused)"
