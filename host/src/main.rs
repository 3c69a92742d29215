//! The command line of linux-sysadmin; see [`linux_sysadmin::cli`].
#![forbid(unsafe_code)]

/// A server runs for every session and waits most of the time, so it should give unused memory back to the system. glibc
/// keeps an arena for each thread, and keeps more after a large block was freed. Its speed with many threads doesn't matter
/// here.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    linux_sysadmin::cli::run()
}
