//! Examples of accountable statistics, beside one deployment on a clock that the group moves.

use super::Step::{self, Begins, Ends, Lasts, Own, Runs, Serves};
use super::clock;

/// Visitors are counted, and two are enough.
pub(super) const GATE: &str = "cat > gate.yaml <<END
place: park/gate
every: 1hr
release: count
fewest: 2
after: { close: 10min }
END";

pub(super) const STEPS: &[Step] = &[
    Own(clock::PROGRAMS),
    // The clock waits until a request is answered, so that a busy machine has its time.
    Own("echo 'second() {
             tick 1; sleep 0.5; alpheus stats results --card roads/card.json > results.txt || true
         }' >> around.sh"),
    Own("alpheus ca init pki
         for name in registrar aggregator; do alpheus ca issue pki --role $name --name $name; done
         alpheus ca issue pki --role smoother --name smoother-1
         umask 077
         for name in ada bert; do
             alpheus pass account $name --accounts accounts.txt > $name.secret
         done
         printf '61.2\\n60.1\\n57.7\\n' > ada.txt
         printf '58.4\\n59\\n58.1\\n' > bert.txt
         cat > speed.yaml <<END
place: speed/road
attribute: speed
interval: { lowest: 0, highest: 100, decimals: 1 }
deviation: true
every: 30s
during: 2
quota: 4
accounts: 2
slots: 6
expected: 6
clients: 2
release: full
after: { turn: 10s, turns: 2, settling: 1s, patience: 1min }
END"),
    Own(GATE),
    Runs("alpheus stats init roads --registrar https://r.example"),
    Own("rm -r roads"),
    Runs("alpheus stats init roads --registrar https://localhost:7701"),
    // A crowd of two.
    Own("rm -r roads
         alpheus stats init roads --registrar https://localhost:7701 \
             --aggregator https://localhost:7702 \
             --smoother https://localhost:7711,https://localhost:7721 --threshold 1 \
             --authority pki/ca.pem --min-accounts 2 --wasteful-accounts 0"),
    Serves("alpheus stats registrar", "serving at "),
    Serves("alpheus stats aggregator", "serving at "),
    Serves("alpheus stats smoother", "serving at "),
    Runs("alpheus stats define gate.yaml"),
    Runs("alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key"),
    Begins("alpheus stats client speed.yaml"),
    Own("alpheus stats client speed.yaml --card roads/card.json --account bert \
             --secret-file bert.secret --state run/bert --input bert.txt &
         while kill -0 $!; do second; done
         wait $!"),
    Ends,
    Runs("curl --cacert"),
    Runs("alpheus stats results --card"),
    Runs("alpheus stats results speed.yaml --card roads/card.json"),
    Runs("alpheus stats results speed.yaml --card roads/card.json --format csv > results.csv"),
    Own("grep -q ,6,354.5,.*,6,0,result$ results.csv"),
    // In place of a car's, which drives once the next aggregate has begun.
    Own("echo 'until [ -e driving ]; do sleep 0.1; done; echo 61; echo 62' > bin/speedometer
         chmod +x bin/speedometer
         printf '60\\n57\\n59\\n58\\n' >> bert.txt"),
    Runs("alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key"),
    Begins("speedometer |"),
    Own("begins=$((($(< now) / 30000000 + 1) * 30000000))
         alpheus stats client speed.yaml --card roads/card.json --account bert \
             --secret-file bert.secret --state run/bert --input bert.txt &
         while kill -0 $!; do
             [ $(< now) -le $begins ] || touch driving
             second
         done
         wait $!"),
    Ends,
    Own(
        "alpheus stats results speed.yaml --card roads/card.json | grep -c ' result, 6 samples' | grep -qx 2",
    ),
    Runs(
        "alpheus stats define speed.yaml --card roads/card.json --key roads/definer.key --count 24",
    ),
    Lasts("alpheus console --statistics"),
];
