//! Examples for the operator of a deployment: what is wrong with it, backups of it, and what is restored after
//! its machine was lost.

use super::Step::{self, Own, Runs, Serves, Stops};

pub(super) const STEPS: &[Step] = &[
    Own("alpheus ca init pki
         alpheus ca issue pki --role server --name service
         alpheus ca issue pki --role controller --name first
         alpheus ca issue pki --role consumer --name analyst
         alpheus ca issue pki --role operator --name watch
         for name in first backup; do
             (umask 077 && head -c 32 /dev/urandom | base64 > $name.key)
         done
         alpheus controller init --identity pki/first --state run/first --key-file first.key --ca pki
         cp examples/fitness/schema.yaml ."),
    Serves("alpheus server --identity pki/service", "serving at "),
    Serves("alpheus controller run", "serving at "),
    Runs("alpheus doctor --identity pki/analyst --server https://localhost:7400 --controller"),
    Runs("alpheus doctor --identity pki/watch"),
    Runs("alpheus doctor --identity pki/analyst --server https://localhost:7400 --query"),
    Runs("alpheus backup --identity pki/service"),
    Runs("alpheus backup --identity pki/first"),
    Runs("alpheus backup --slots"),
    Runs("alpheus backup verify"),
    Stops,
    Own("mkdir lost && mv run pki/service pki/first lost && mkdir run"),
    Runs("alpheus restore --from service.backup"),
    Runs("alpheus restore --from first.backup"),
    // What is restored goes on.
    Serves("alpheus server --identity pki/service", "serving at "),
    Serves("alpheus controller run", "serving at "),
];
