//! How much memory a process may have, where the system lets us limit it, and how much it has had.

use std::fs;
use std::path::{Path, PathBuf};

/// Where groups of processes are, and which of their files holds the limit: the second version of them, and the first.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];

/// A group of processes that together may have so much memory: the system ends one that takes more.
pub(super) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// A new group; none where the system has none, or does not let us make one.
    pub(super) fn of(bytes: u64) -> Option<MemoryGroup> {
        GROUPS.iter().find_map(|(folder, limit)| {
            let own = Path::new(folder).join(format!("alpheus-drill-{}", std::process::id()));
            fs::create_dir(&own).ok()?;
            let group = MemoryGroup(own);
            let limit = group.0.join(limit);
            // In a folder that is not of such groups, there is no such file.
            (limit.exists() && fs::write(limit, bytes.to_string()).is_ok()).then_some(group)
        })
    }

    /// What starts a program in it.
    pub(super) fn starter(&self) -> Vec<String> {
        let enter = format!("echo $$ > '{}' && exec \"$@\"", self.0.join("cgroup.procs").display());
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // While a process is in it, it stays.
        let _ = fs::remove_dir(&self.0);
    }
}

/// The most memory that a process has had so far, in bytes: what was resident.
pub(super) fn peak_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}
