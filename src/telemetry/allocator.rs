//! Makes the system's allocator return memory.
//!
//! Batches are large, and are made by one thread and dropped by another. Left alone, glibc keeps what was freed in an arena
//! for every thread, and keeps large blocks once some have been freed: under a small memory limit the process then holds
//! twice of what it uses. One arena per core and blocks that go straight back cost no measurable time.

/// Blocks of this many bytes and more go back to the system as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 1 << 20;

/// So much may lie free at the end of an arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const SLACK: i32 = 16 << 20;

/// Sets up the allocator; to be called before there are other threads. Other systems' allocators are left as they are.
pub fn set_up() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(1 << 10)) as i32;
        for (option, value) in
            [(libc::M_ARENA_MAX, cores), (libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, SLACK)]
        {
            #[expect(unsafe_code, reason = "a C function without pointers; a refused option changes nothing")]
            let _accepted = unsafe { libc::mallopt(option, value) };
        }
    }
}
