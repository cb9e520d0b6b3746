//! Examples of owners who move from one controller to another, which may be lost.

use super::Step::{self, Beside, Own, Runs, Stops};

const SERVER: &str = "alpheus server --identity pki/service --schema examples/fitness/schema.yaml \
    --state run/service --api 127.0.0.1:7400";
const FIRST: &str = "alpheus controller run --identity pki/first --state run/first --key-file first.key \
    --schema examples/fitness/schema.yaml --server https://localhost:7400 \
    --api 127.0.0.1:7401";
const SECOND: &str = "alpheus controller run --identity pki/second --state run/second --key-file second.key \
    --schema examples/fitness/schema.yaml --server https://localhost:7400 \
    --api 127.0.0.1:7402";

pub(super) const STEPS: &[Step] = &[
    Own("alpheus ca init pki
         alpheus ca issue pki --role server --name service
         for name in first second; do
             alpheus ca issue pki --role controller --name $name
             (umask 077 && head -c 32 /dev/urandom | base64 > $name.key)
             alpheus controller init --identity pki/$name --state run/$name --key-file $name.key \
                 --ca pki
         done
         for name in alice bob; do alpheus ca issue pki --role owner --name $name; done
         for name in watch meter; do alpheus ca issue pki --role producer --name $name; done"),
    Beside(SERVER, "serving at "),
    Beside(FIRST, "serving at "),
    Beside(SECOND, "serving at "),
    Own("add() {
             alpheus owner add --identity pki/$1 --controller https://localhost:7401 \
                 --schema examples/fitness/schema.yaml \
                 --policies examples/fitness/policies.yaml --metadata region=Texas \
                 --producer $2 --device $2.json > $1.stream
         }
         add alice watch; add bob meter"),
    Runs("alpheus owner move --identity pki/alice"),
    // The first host is lost.
    Stops,
    Own("rm -r run/first"),
    Beside(SERVER, "serving at "),
    Beside(SECOND, "serving at "),
    Runs("alpheus owner move --identity pki/bob --lost"),
];
