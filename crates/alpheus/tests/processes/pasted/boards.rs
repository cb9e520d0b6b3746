//! Examples of the anonymous board, beside one board after the other on a clock that the group moves.

use super::Step::{self, Begins, Beside, Ends, Own, Runs, Serves, Stops};
use super::clock;

const SECOND: &str = "alpheus board serve --role database --identity pki/second --card board.json \
    --key second.key --members members.txt --state run/second --fence fences/second \
    --api 127.0.0.1:7602";

/// These members write covers while the clock moves on, and then this epoch is read.
macro_rules! written {
    ($members:literal, $seconds:literal, $epoch:literal) => {
        concat!(
            "for name in ",
            $members,
            "; do
                 alpheus board post --cover --card board.json --key $name.key &
             done
             while [ \"$(jobs -r)\" ]; do tick ",
            $seconds,
            "; sleep 0.2; done
             alpheus board read --card board.json --epoch ",
            $epoch
        )
    };
}

pub(super) const STEPS: &[Step] = &[
    Own(clock::PROGRAMS),
    Own("alpheus ca init pki
         for name in first second auditor a b c door; do
             alpheus ca issue pki --role board --name $name
         done
         for name in second auditor a b c door; do alpheus board key $name.key > $name.pub; done
         for name in bert cleo; do alpheus board key $name.key >> members.txt; done
         alpheus ca issue pki --role issuer --name issuer
         alpheus pass init deployment --issuer https://localhost:7501 \
             --gateway https://localhost:7604 --authority pki/ca.pem --epoch 600
         echo Hello > hello.txt"),
    Runs("alpheus board key first.key"),
    Runs("alpheus board key ada.key"),
    Runs("alpheus board init board.json --first https://first.example"),
    Own("rm board.json"),
    Runs(
        "alpheus board init board.json --servers 3 --server https://a.example --server-key $(cat a.pub) --server https://b.example --server-key $(cat b.pub) --server https://c.example --server-key $(cat c.pub) --members",
    ),
    Own("rm board.json"),
    Runs(
        "alpheus board init board.json --servers 3 --server https://a.example --server-key $(cat a.pub) --server https://b.example --server-key $(cat b.pub) --server https://c.example --server-key $(cat c.pub) --passes",
    ),
    Own("rm board.json"),
    Runs(
        "alpheus board init board.json --first https://localhost:7601 --first-key $(cat first.pub) --second https://localhost:7602 --second-key $(cat second.pub) --auditor https://localhost:7603 --auditor-key $(cat auditor.pub) --members members.txt",
    ),
    Own("rm board.json"),
    Runs(
        "alpheus board init board.json --first https://localhost:7601 --first-key $(cat first.pub) --second https://localhost:7602 --second-key $(cat second.pub) --auditor https://localhost:7603 --auditor-key $(cat auditor.pub) --members members.txt --authority",
    ),
    // An epoch ends as soon as three have written.
    Own("rm board.json
         alpheus board init board.json --first https://localhost:7601 \
             --first-key $(cat first.pub) --second https://localhost:7602 \
             --second-key $(cat second.pub) --auditor https://localhost:7603 \
             --auditor-key $(cat auditor.pub) --members members.txt --authority pki/ca.pem \
             --writers 3 --epoch 600 --complaints 2 --timeout 3600"),
    Serves("alpheus board serve --role database", "serving at "),
    Beside(SECOND, "serving at "),
    Serves("alpheus board serve --role auditor", "serving at "),
    Begins("echo 'Hello' | alpheus board post"),
    Own(written!("bert cleo", "2", "0")),
    Ends,
    Runs("alpheus board read --card board.json"),
    Own("tick 600"),
    Begins("alpheus board post --file hello.txt --card board.json --key"),
    Own(written!("bert cleo", "2", "1")),
    Own("tick 600"),
    Begins("alpheus board post --cover --card board.json --key ada.key"),
    Own(written!("bert cleo", "2", "2")),
    Ends,
    Serves(
        "alpheus board member --card board.json --key ada.key --state run/ada",
        "writing in every epoch",
    ),
    Runs("echo 'Hello' | alpheus board queue"),
    Runs("alpheus board queue --file"),
    Own("tick 600"),
    Own(written!("bert cleo", "10", "3")),
    Runs("alpheus board queue --list"),
    Stops,
    Serves("alpheus board serve --role database", "serving at "),
    Beside(SECOND, "serving at "),
    Serves("alpheus board serve --role auditor", "serving at "),
    Own("tick 5400"),
    Serves(
        "alpheus board member --card board.json --key ada.key --state run/ada --crowd",
        "writing in every epoch",
    ),
    Own(written!("bert cleo", "10", "12")),
    Runs("alpheus board read --card board.json --epoch 12 --format json"),
    Stops,
    // Three equal servers.
    Own("rm board.json && alpheus board init board.json --servers 3 \
             --server https://localhost:7601 --server-key $(cat a.pub) \
             --server https://localhost:7602 --server-key $(cat b.pub) \
             --server https://localhost:7603 --server-key $(cat c.pub) \
             --members members.txt --authority pki/ca.pem --writers 3 --epoch 600 --timeout 3600"),
    Serves("alpheus board serve --role server", "serving at "),
    Beside(
        "alpheus board serve --role server --identity pki/b --card board.json --key b.key \
             --members members.txt --state run/b --fence fences/b --api 127.0.0.1:7602",
        "serving at ",
    ),
    Beside(
        "alpheus board serve --role server --identity pki/c --card board.json --key c.key \
             --members members.txt --state run/c --fence fences/c --api 127.0.0.1:7603",
        "serving at ",
    ),
    Own(written!("ada bert cleo", "2", "0")),
    Stops,
    // A doorkeeper, and passes in place of members.
    Own("rm -r board.json ada.key run fences deployment
         tick $((600 - $(< now) / 1000000 % 600))
         alpheus pass init deployment --issuer https://localhost:7501 \
             --gateway https://localhost:7604 --authority pki/ca.pem --epoch 600
         umask 077
         head -c 32 /dev/urandom | base64 > ada.key
         for name in ada bert cleo; do
             alpheus pass account $name --accounts accounts.txt > $name.secret
         done
         alpheus board init board.json --first https://localhost:7601 \
             --first-key $(cat first.pub) --second https://localhost:7602 \
             --second-key $(cat second.pub) --auditor https://localhost:7603 \
             --auditor-key $(cat auditor.pub) --passes deployment/card.json \
             --door https://localhost:7604 --door-key $(cat door.pub) --authority pki/ca.pem \
             --writers 3 --complaints 2 --timeout 3600"),
    Beside(
        "alpheus pass issuer --identity pki/issuer --deployment deployment \
             --accounts accounts.txt --state run/issuer --api 127.0.0.1:7501 --new-state",
        "serving at ",
    ),
    Serves("alpheus board door", "serving at "),
    Beside(
        "alpheus board serve --role database --identity pki/first --card board.json \
             --key first.key --state run/first --fence fences/first --api 127.0.0.1:7601",
        "serving at ",
    ),
    Beside(
        "alpheus board serve --role database --identity pki/second --card board.json \
             --key second.key --state run/second --fence fences/second --api 127.0.0.1:7602",
        "serving at ",
    ),
    Serves("alpheus board serve --role auditor", "serving at "),
    Own("for name in ada bert cleo; do
             alpheus pass client join --card deployment/card.json --account $name \
                 --secret-file $name.secret --pass $name.pass --key-file ada.key
             alpheus pass client fetch --pass $name.pass --key-file ada.key
         done
         tick 600"),
    Begins("alpheus board post --file hello.txt --card board.json --pass"),
    Own("for name in bert cleo; do
             alpheus board post --cover --card board.json --pass $name.pass --key-file ada.key &
         done
         while [ \"$(jobs -r)\" ]; do tick 1; sleep 0.2; done
         alpheus board read --card board.json"),
    Ends,
    Serves("alpheus board member --card board.json --pass", "writing in every epoch"),
];
