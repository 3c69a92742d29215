//! A directory of data that a module reads by itself, through WASI, on the machine that the server runs on.
//!
//! WASI knows no globs, and no host function checks what is opened. Therefore such a directory has to lie where programs
//! keep data that everyone may read. Nobody except root and the server's own account may be able to put something into it.
//! No file in it may [hold a secret](super::path::secret_reason) either.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::path::{is_lexically_safe, secret_reason};

/// The directories below which programs keep data that everyone may read. A directory elsewhere is refused.
const ROOTS: &[&str] = &["/opt/", "/srv/", "/usr/local/share/", "/usr/share/"];

/// The greatest number of entries in such a directory. All of them are checked before each call.
const MAX_ENTRIES: usize = 10_000;

/// A directory that a module may read, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDirectory(String);

impl DataDirectory {
    /// Parses a glob such as `/usr/share/zoneinfo/**`. The error says what was expected.
    pub fn parse(glob: &str) -> Result<Self, String> {
        let expected = || {
            let roots: Vec<&str> = ROOTS.iter().map(|root| root.trim_end_matches('/')).collect();
            format!(
                "expected a whole directory of data below {}, as `/usr/share/zoneinfo/**`",
                roots.join(", ")
            )
        };
        let path = glob.strip_suffix("/**").ok_or_else(expected)?;
        let is_plain = is_lexically_safe(path) && !path.ends_with('/') && !path.contains(['*', '?', '[']);
        match is_plain && ROOTS.iter().any(|root| path.starts_with(root)) && secret_reason(path).is_none() {
            true => Ok(Self(path.to_owned())),
            false => Err(expected()),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &str {
        &self.0
    }

    /// Checks that the directory may be opened now. `Ok(false)` means that it doesn't exist; the error says why it may
    /// not be opened.
    pub fn check(&self) -> Result<bool, String> {
        let path = Path::new(&self.0);
        match path.canonicalize() {
            Ok(real) if real == path => {}
            Ok(real) => return Err(format!("{} leads to {}", self.0, real.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(format!("{}: {error}", self.0)),
        }
        for above in path.ancestors().skip(1) {
            let metadata = fs::metadata(above).map_err(|error| format!("{}: {error}", above.display()))?;
            trusted(above, &metadata)?;
        }
        let mut left = MAX_ENTRIES;
        look_through(path, &mut left)?;
        Ok(true)
    }
}

fn look_through(path: &Path, left: &mut usize) -> Result<(), String> {
    let shown = path.display();
    *left = left.checked_sub(1).ok_or_else(|| format!("{shown}: more than {MAX_ENTRIES} files are there"))?;
    if let Some(reason) = secret_reason(&path.to_string_lossy()) {
        return Err(format!("{shown} may hold {reason}"));
    }
    let metadata = fs::symlink_metadata(path).map_err(|error| format!("{shown}: {error}"))?;
    let kind = metadata.file_type();
    if kind.is_symlink() || kind.is_file() {
        // WASI follows links within the directory only.
        return Ok(());
    }
    if !kind.is_dir() {
        return Err(format!("{shown} is neither a file nor a directory"));
    }
    trusted(path, &metadata)?;
    for entry in fs::read_dir(path).map_err(|error| format!("{shown}: {error}"))? {
        look_through(&entry.map_err(|error| format!("{shown}: {error}"))?.path(), left)?;
    }
    Ok(())
}

/// Checks that nobody except root and this account can put something into a directory.
fn trusted(path: &Path, metadata: &Metadata) -> Result<(), String> {
    let own = [0, rustix::process::geteuid().as_raw()].contains(&metadata.uid());
    match own && metadata.mode() & 0o022 == 0 {
        true => Ok(()),
        false => Err(format!("others than root and this account can write to {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_directories_of_data_are_had_whole() {
        for right in ["/usr/share/zoneinfo/**", "/opt/tool/data/**", "/srv/geo ip/**"] {
            assert!(DataDirectory::parse(right).is_ok(), "{right}");
        }
        for wrong in [
            "/usr/share/zoneinfo",
            "/usr/share/zoneinfo/*",
            "/usr/share/**/x/**",
            "/usr/share/**",
            "/usr/share/../../etc/**",
            "/etc/**",
            "/home/ada/**",
            "/root/.ssh/**",
            "/opt/x/.ssh/id_rsa/**",
            "/**",
            "srv/x/**",
        ] {
            let error = DataDirectory::parse(wrong).unwrap_err();
            assert!(error.contains("/usr/share/zoneinfo/**"), "{wrong}: {error}");
        }
    }

    /// A directory of this account below the working directory: anybody may write to the one for temporary files.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap()
    }

    #[test]
    fn a_directory_is_looked_through_before_it_is_given_away() {
        let directory = directory();
        let inside = directory.path().join("data");
        fs::create_dir(&inside).unwrap();
        let data = DataDirectory(inside.to_str().unwrap().to_owned());
        fs::write(inside.join("plain"), "").unwrap();
        if data.check() != Ok(true) {
            // The source tree lies where others may write, so nothing below it is trusted.
            assert!(data.check().unwrap_err().contains("others"));
            return;
        }
        assert_eq!(DataDirectory(format!("{}/none", data.0)).check(), Ok(false));
        fs::create_dir(inside.join(".ssh")).unwrap();
        fs::write(inside.join(".ssh/id_ed25519"), "").unwrap();
        assert!(data.check().unwrap_err().contains("private key"));
        fs::remove_dir_all(inside.join(".ssh")).unwrap();
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(data.check().unwrap_err().contains("others"));
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            inside.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(data.check().unwrap_err().contains("neither"));
        std::os::unix::fs::symlink(&inside, directory.path().join("link")).unwrap();
        let link = DataDirectory(directory.path().join("link").to_str().unwrap().to_owned());
        assert!(link.check().unwrap_err().contains("leads to"));
    }
}
