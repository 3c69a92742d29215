//! A program's standard input, which is complete before the program starts. From a pipe, the program would take a part
//! for the whole if the writer was killed, and install an empty crontab, for example.

use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// Makes a file without a name that nobody can change any more. It is read from its beginning.
pub(super) fn sealed(contents: &[u8]) -> std::io::Result<OwnedFd> {
    const NAME: &str = "stdin";
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        // The kernel is older than 6.3.
        Err(Errno::INVAL) => memfd_create(NAME, flags),
        made => made,
    };
    let mut file = File::from(made?);
    file.write_all(contents)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_program_reads_all_of_it_and_nobody_writes_to_it() {
        for contents in [Vec::new(), b"a\0b\n".to_vec(), vec![b'x'; 1 << 20]] {
            let mut child = Command::new("cat")
                .stdin(Stdio::from(sealed(&contents).unwrap()))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut read = Vec::new();
            child.stdout.take().unwrap().read_to_end(&mut read).unwrap();
            assert!(child.wait().unwrap().success());
            assert!(read == contents);
        }
        let mut file = File::from(sealed(b"a").unwrap());
        let refused = file.write_all(b"b").unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(Errno::PERM.raw_os_error()));
        assert!(file.set_len(0).is_err());
    }
}
