//! The command line of linux-sysadmin; see [`linux_sysadmin::cli`].
#![forbid(unsafe_code)]

/// A server waits most of the time, and one runs for every session, so memory that isn't used goes back to the system.
/// glibc keeps an arena for each thread and grows what it keeps with the largest block that was ever freed; its speed
/// with many threads is worth less here, where a call takes as long either way.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> std::process::ExitCode {
    linux_sysadmin::cli::run()
}
