//! A clock that a group moves, so that nobody waits for epochs.

/// Writes what every shell of a group reads first if `BASH_ENV` names it: the program takes its time
/// from a file, which `tick` moves on by so many seconds; and programs in `bin` stand in for others.
/// The clock begins at noon, so that no day ends, and yesterday: certificates are valid by the
/// machine's clock, too.
pub(super) const PROGRAMS: &str = "mkdir bin
cat > around.sh <<'END'
PATH=$PWD/bin:$PATH
alpheus() { command alpheus --replay-clock clock \"$@\"; }
tick() {
    local time digits bytes=
    time=$(($(< now) + $1 * 1000000))
    echo $time > now
    printf -v digits %016x%016x $time $((~time))
    while [ \"$digits\" ]; do bytes+=\"\\\\x${digits:0:2}\" digits=${digits:2}; done
    printf \"$bytes\" 1<> clock
}
END
echo $(($(date +%s) / 86400 * 86400 - 43200))000000 > now
. ./around.sh
tick 0";
