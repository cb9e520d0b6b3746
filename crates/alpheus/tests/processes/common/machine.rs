//! A machine whose disk is as slow, and whose clock as wrong, as files say.

use super::deployment::Site;
use super::ended_well;
use std::fs;
use std::process::Command;

/// A flush waits first for as many milliseconds as the file says that `SLOW_DISK` names. It reads the file again and
/// again: a disk that hangs for an hour answers once the file says 0. The clock is off by as many seconds as the file
/// says that `WRONG_CLOCK` names. Time that passes is not: what changes that, too, keeps other threads waiting while
/// one sleeps.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long number_in(const char *variable) {
    char text[32] = "";
    int file = open(getenv(variable), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? strtol(text, NULL, 10) : 0;
}

static void wait_first(void) {
    for (long waited = 0; waited < number_in("SLOW_DISK"); waited += 50) usleep(50000);
}

int fsync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_first();
    return real(file);
}

int fdatasync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_first();
    return real(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock == CLOCK_REALTIME) time->tv_sec += number_in("WRONG_CLOCK");
    return result;
}
"#;

/// The same place, whose service is on such a machine: the files are `service.slow` and `service.clock`. It needs a
/// compiler for C, as building the program does.
pub(crate) fn fragile(place: Site) -> Site {
    let [source, library, slow, clock] =
        ["fragile.c", "fragile.so", "service.slow", "service.clock"].map(|file| place.path(file));
    fs::write(&source, LIBRARY).unwrap();
    fs::write(&slow, "0").unwrap();
    fs::write(&clock, "0").unwrap();
    let mut build = Command::new("cc");
    ended_well(build.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl"));
    let files = [("LD_PRELOAD", library), ("SLOW_DISK", slow), ("WRONG_CLOCK", clock)];
    let files = files.map(|(name, file)| format!("{name}={}", file.display()));
    place.started_by(["env".to_owned()].into_iter().chain(files).collect())
}
