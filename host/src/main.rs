//! The command line of linux-sysadmin; see [`linux_sysadmin::cli`].
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    linux_sysadmin::cli::run()
}
