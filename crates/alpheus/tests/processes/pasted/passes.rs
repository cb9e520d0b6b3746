//! Examples of the access pass, beside one deployment on a clock that the group moves.

use super::Step::{self, Beside, Own, Runs, Serves, Stops};
use super::clock;

pub(super) const STEPS: &[Step] = &[
    Own(clock::PROGRAMS),
    Own("alpheus ca init pki
         for name in issuer verifier gateway; do
             alpheus ca issue pki --role $name --name $name
         done
         alpheus ca issue pki --role verifier --name second
         alpheus ca issue pki --role gateway --name gate"),
    Runs("alpheus pass init deployment --issuer https://issuer.example"),
    Runs("alpheus pass card deployment/card.json"),
    Own("rm -r deployment"),
    Runs(
        "alpheus pass init deployment --issuer https://localhost:7501 --gateway https://localhost:7443",
    ),
    Own("rm -r deployment"),
    Runs(
        "alpheus pass init deployment --issuer https://localhost:7501 --gateway https://localhost:7443 --authority",
    ),
    Runs("alpheus pass init gates"),
    // With login codes, and with authorities that this machine's programs know.
    Own("rm -r deployment
         alpheus pass init deployment --issuer https://localhost:7501 \
             --gateway https://localhost:7443 --authority pki/ca.pem --epoch 15 --ahead 1
         cp deployment/card.json ."),
    Runs("alpheus pass card card.json"),
    Runs("alpheus pass account ada --accounts accounts.txt"),
    Own("rm accounts.txt"),
    Runs("(umask 077; alpheus pass account ada --accounts accounts.txt > ada.secret)"),
    Own("umask 077
         for name in bob cy dan eve; do
             alpheus pass account $name --accounts accounts.txt > $name.secret
         done"),
    Serves(
        "alpheus pass issuer --identity pki/issuer --deployment deployment --accounts accounts.txt",
        "serving at ",
    ),
    Serves("alpheus pass verifier --identity pki/verifier", "serving at "),
    Serves("alpheus pass verifier --identity pki/second", "serving at "),
    Own("mkdir www && echo 'la la la' > www/song.txt"),
    Beside(
        "at=127.0.0.1:8000; exec python3 -u -m http.server ${at#*:} --bind 127.0.0.1 --directory www",
        "Serving HTTP",
    ),
    Serves(
        "alpheus pass gateway --identity pki/gateway --card deployment/card.json --verifiers https://localhost:7502 --upstream",
        "serving at ",
    ),
    Runs("(umask 077; head -c 32 /dev/urandom | base64 > ada.key)"),
    Runs("alpheus pass client join --card card.json --account ada"),
    Runs("alpheus pass client fetch"),
    Own("for name in bob cy dan eve; do
             alpheus pass client join --card card.json --account $name \
                 --secret-file $name.secret --pass $name.pass --key-file ada.key
             alpheus pass client fetch --pass $name.pass --key-file ada.key
         done"),
    // A new verifier waits until no code is left that it may have forgotten.
    Own("tick 60"),
    Serves("alpheus pass client run", "connected"),
    Own("alpheus pass client code --pass bob.pass --key-file ada.key > code.txt"),
    Runs(
        "alpheus pass scan --identity pki/gate --card deployment/card.json --verifiers https://localhost:7502 < code.txt",
    ),
    // In place of a camera.
    Own("echo 'alpheus pass client code --pass cy.pass --key-file ada.key' > code.sh
         printf '#!/bin/bash\n. ./code.sh\n' > bin/zbarcam && chmod +x bin/zbarcam"),
    Runs("zbarcam --raw --oneshot"),
    // A gate's new store waits, too: it may have forgotten what it has seen.
    Own("mkdir -p run && ! alpheus pass scan --offline --deployment deployment --state run/gate \
             --gates 3 < code.txt
         tick 60
         alpheus pass client code --pass dan.pass --key-file ada.key > code.txt"),
    Runs("alpheus pass scan --offline"),
    Stops,
    Own("cp eve.pass ada.pass"),
    Runs("alpheus pass client code --pass ada.pass --key-file ada.key --qr"),
    Runs("alpheus pass client code --pass ada.pass --key-file ada.key --nonce"),
    Serves(
        "alpheus pass gateway --identity pki/gateway --card deployment/card.json --verifiers https://localhost:7502 --api",
        "serving at ",
    ),
    // In place of a directory's own program.
    Own("printf '#!/bin/sh\nread name; read secret\necho account-17\n' > bin/check-account
         chmod +x bin/check-account
         rm ada.pass"),
    Serves(
        "alpheus pass issuer --identity pki/issuer --deployment deployment --accounts-command",
        "serving at ",
    ),
    Runs("alpheus pass client join --card card.json --account ada"),
    Runs("alpheus pass client fetch"),
    // In place of a provider's client.
    Own("code() { base64 -w 0 | tr +/ -_ | tr -d =; }
         head=$(echo '{\"alg\": \"RS256\"}' | code)
         claims=$(echo '{\"iss\": \"https://login.example\", \"sub\": \"u-17\"}' | code)
         echo \"echo $head.$claims.$(echo signature | code)\" > bin/oidc-token
         chmod +x bin/oidc-token
         rm ada.pass"),
    Runs("alpheus pass client join --card card.json --id-token-command"),
];
