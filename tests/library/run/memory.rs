//! Tests of the memory that the system leaves to a process.

use std::path::Path;

use super::system::{AvailableMemory, MemoryLimit, min_available};

const MIB: u64 = 1 << 20;

fn min_available_of(files: &[(&str, &str)]) -> Option<(u64, MemoryLimit)> {
    let read = |path: &Path| {
        let file = files.iter().find(|f| Path::new(f.0) == path);
        file.map(|f| f.1.to_string())
    };
    min_available(&read).map(|a| (a.bytes / MIB, a.limit))
}

const MEMINFO: (&str, &str) = (
    "/proc/meminfo",
    "MemTotal:   8388608 kB\nMemAvailable:    4194304 kB\n",
);
const UNLIMITED: (&str, &str) = (
    "/proc/self/limits",
    "Limit  Soft Limit  Hard Limit  Units\nMax data size     unlimited  unlimited  bytes\n\
     Max address space         unlimited            unlimited            bytes\n",
);
const STATUS: (&str, &str) = (
    "/proc/self/status",
    "Name:\toneport\nVmSize:\t  102400 kB\nVmData:\t   51200 kB\n",
);
const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw shared:9 - tmpfs tmpfs rw\n\
     35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:1 - cgroup cgroup rw,memory\n\
     36 31 0:33 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n\
     41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

#[test]
fn unknown_limits_are_none() {
    assert_eq!(min_available_of(&[]), None);
    assert_eq!(
        min_available_of(&[MEMINFO, UNLIMITED]),
        Some((4096, MemoryLimit::Free))
    );
}

#[test]
fn own_limits_are_reduced_by_current_use() {
    let limits = "Max data size             1073741824           unlimited            bytes\n\
         Max address space         2147483648           unlimited            bytes\n";
    let all = [MEMINFO, ("/proc/self/limits", limits), STATUS];
    assert_eq!(min_available_of(&all), Some((1024 - 50, MemoryLimit::Data)));
    let limits = "Max data size             unlimited           unlimited            bytes\n\
         Max address space         104857599           unlimited            bytes\n";
    let all = [MEMINFO, ("/proc/self/limits", limits), STATUS];
    assert_eq!(min_available_of(&all), Some((0, MemoryLimit::AddressSpace)));
}

#[test]
fn control_groups_of_version_2_include_their_ancestors() {
    let limit = |inner: &'static str, outer: &'static str, root: &'static str| {
        min_available_of(&[
            MEMINFO,
            UNLIMITED,
            ("/proc/self/cgroup", "0::/outer/inner\n"),
            ("/proc/self/mountinfo", root),
            ("/sys/fs/cgroup/unified/outer/inner/memory.max", inner),
            (
                "/sys/fs/cgroup/unified/outer/inner/memory.current",
                "104857600\n",
            ),
            ("/sys/fs/cgroup/unified/outer/memory.max", outer),
            ("/sys/fs/cgroup/unified/outer/memory.current", "209715200\n"),
            (
                "/sys/fs/cgroup/unified/outer/memory.stat",
                "anon 1\ninactive_file 104857600\n",
            ),
        ])
    };
    let control = |mib| Some((mib, MemoryLimit::ControlGroup));
    assert_eq!(limit("max\n", "max\n", MOUNTS).unwrap().0, 4096);
    assert_eq!(limit("1073741824\n", "max\n", MOUNTS), control(924));
    assert_eq!(limit("1073741824\n", "536870912\n", MOUNTS), control(412));
    // The use already exceeds the limit.
    assert_eq!(limit("1\n", "536870912\n", MOUNTS), control(0));
    // A container sees its own group in place of the whole hierarchy.
    let inner = min_available_of(&[
        MEMINFO,
        ("/proc/self/cgroup", "0::/outer/inner\n"),
        (
            "/proc/self/mountinfo",
            "41 31 0:38 /outer/inner /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("/sys/fs/cgroup/memory.max", "314572800\n"),
        ("/sys/fs/cgroup/memory.high", "209715200\n"),
        ("/sys/fs/cgroup/memory.current", "104857600\n"),
    ]);
    assert_eq!(inner, control(100));
}

#[test]
fn control_groups_of_version_1() {
    let limit = |bytes: &'static str| {
        min_available_of(&[
            MEMINFO,
            ("/proc/self/cgroup", "8:pids:/p\n4:memory:/m\n0::/\n"),
            ("/proc/self/mountinfo", MOUNTS),
            ("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", bytes),
            (
                "/sys/fs/cgroup/memory/m/memory.usage_in_bytes",
                "314572800\n",
            ),
            (
                "/sys/fs/cgroup/memory/m/memory.stat",
                "inactive_file 1\ntotal_inactive_file 104857600\n",
            ),
        ])
    };
    assert_eq!(
        limit("1073741824\n"),
        Some((824, MemoryLimit::ControlGroup))
    );
    // No limit.
    assert_eq!(
        limit("9223372036854771712\n"),
        Some((4096, MemoryLimit::Free))
    );
}

#[test]
fn byte_counts_are_readable() {
    let shown = |bytes| {
        let limit = MemoryLimit::Free;
        let shown = AvailableMemory { bytes, limit }.to_string();
        shown
            .strip_suffix(", the memory that is free")
            .unwrap()
            .to_owned()
    };
    assert_eq!(shown(512), "512 bytes");
    assert_eq!(shown(2560 * MIB), "2.5 GiB");
    assert_eq!(shown(300 * MIB), "300 MiB");
    assert_eq!(shown(u64::MAX), "16 EiB");
}
