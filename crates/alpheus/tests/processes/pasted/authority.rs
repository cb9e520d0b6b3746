//! Examples of the certificate authority.

use super::Step::{self, Own, Runs};

pub(super) const STEPS: &[Step] = &[
    Runs("alpheus ca init pki"),
    Runs("alpheus ca issue pki --role server"),
    Runs("alpheus ca issue pki --role controller --name first"),
    Runs("alpheus ca issue pki --role consumer --name analyst"),
    Runs("(umask 077 && head -c 32 /dev/urandom | base64 > first.key)"),
    Runs("alpheus controller init --identity pki/first"),
    // Without the authority's folder, its request goes to the authority.
    Own("mkdir first && alpheus controller init --identity pki/first --state run/again \
             --key-file first.key
         cp run/again/request.txt first"),
    Runs("alpheus ca certify pki first/request.txt"),
    Own("alpheus ca issue pki --role owner --name alice --output alice"),
    Runs("alpheus owner request --identity alice"),
    Runs("alpheus ca certify pki alice/request.txt --name alice > alice/owner.txt"),
    Runs("alpheus ca certify pki alice/request.txt --name alice --renew"),
    Runs("alpheus ca renew pki pki/service pki/first"),
    Runs("alpheus ca renew pki pki/service --hours 12"),
    Own("alpheus ca issue pki --role producer --name phone"),
    Runs("alpheus ca rollover pki pki/service"),
    Runs("alpheus ca renew pki pki/service pki/first pki/phone"),
    Runs("alpheus ca rollover pki --finish"),
    Runs("alpheus ca revoke pki"),
    Runs("alpheus ca issue pki --role gateway --name gate"),
];
