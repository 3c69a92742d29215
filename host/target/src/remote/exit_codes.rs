//! The exit codes of the commands of a pipeline. A channel carries one exit code, so the host's script writes all of them
//! to stderr, in a line of its own after a key.
//!
//! The key is another one for each pipeline and reaches the script as the first line of its standard input. The commands
//! don't learn it before they have ended, and so nothing that they write is taken for their exit codes.

use bytes::Bytes;

use host_base::problem::Problem;

/// The most bytes of the exit codes of one pipeline, with their places.
const LONGEST_CODES: usize = 128;
/// The exit code with which the script ends where it starts no command.
const NOT_STARTED: i32 = 126;

/// Finds the exit codes in stderr and takes them out of it.
pub(super) struct ExitCodes {
    key: String,
    /// The number of commands.
    count: usize,
    /// Bytes that may belong to the key or to the exit codes.
    held: Vec<u8>,
    /// The line after the key, once it is there.
    line: Option<String>,
}

impl ExitCodes {
    /// Expects the exit codes of so many commands behind a new key.
    pub(super) fn new(count: usize) -> Result<Self, Problem> {
        Ok(Self { key: host_base::id::random()?, count, held: Vec::new(), line: None })
    }

    /// Returns the standard input of the script: the key, and what the first command reads.
    pub(super) fn stdin(&self, own: Option<&Vec<u8>>) -> Vec<u8> {
        [self.key.as_bytes(), b"\n", own.map_or(&[], Vec::as_slice)].concat()
    }

    /// Returns the part of stderr up to here that the commands wrote and that wasn't returned yet.
    pub(super) fn own_part(&mut self, piece: Bytes) -> Bytes {
        if self.line.is_some() {
            return piece;
        }
        self.held.extend_from_slice(&piece);
        let key = self.key.as_bytes();
        let Some(at) = self.held.windows(key.len()).position(|window| window == key) else {
            let passed = self.held.len().saturating_sub(key.len() - 1);
            return self.held.drain(..passed).collect();
        };
        let said = &self.held[at + key.len()..];
        let end = said.iter().position(|byte| *byte == b'\n');
        let Some(end) = end.or((said.len() > LONGEST_CODES).then_some(said.len())) else {
            return self.held.drain(..at).collect();
        };
        self.line = Some(String::from_utf8_lossy(&said[..end]).into_owned());
        let rest = at + key.len() + end + 1;
        let mut own_part = std::mem::take(&mut self.held);
        own_part.drain(at..rest.min(own_part.len()));
        own_part.into()
    }

    /// Returns what is still held. Nothing is expected after it.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Returns the exit code of each command, where all of them are known. `status` is that of the script.
    pub(super) fn of_all(&self, status: i32) -> Option<Vec<i32>> {
        let Some(line) = &self.line else {
            return (status == NOT_STARTED).then(|| vec![NOT_STARTED; self.count]);
        };
        let numbers: Vec<i32> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let mut exit_codes = vec![None; self.count];
        for pair in numbers.chunks(2) {
            let [place, exit_code] = pair else { return None };
            exit_codes.get_mut(usize::try_from(*place).ok()?)?.replace(*exit_code);
        }
        exit_codes.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(count: usize) -> ExitCodes {
        ExitCodes { key: "K3Y".to_owned(), ..ExitCodes::new(count).unwrap() }
    }

    fn read(exit_codes: &mut ExitCodes, pieces: &[&str]) -> String {
        let mut own: Vec<u8> = Vec::new();
        for piece in pieces {
            own.extend(exit_codes.own_part(Bytes::copy_from_slice(piece.as_bytes())));
        }
        own.extend(exit_codes.take_rest());
        String::from_utf8(own).unwrap()
    }

    #[test]
    fn exit_codes_are_taken_out_of_stderr_however_it_is_cut() {
        let said = "oh K3 K3\nno end of lineK3Y 1 141 0 0\nlate\n";
        for cut in 0..said.len() {
            let mut exit_codes = known(2);
            let own = read(&mut exit_codes, &[&said[..cut], &said[cut..]]);
            assert_eq!(own, "oh K3 K3\nno end of linelate\n", "{cut}");
            assert_eq!(exit_codes.of_all(0), Some(vec![0, 141]), "{cut}");
        }
        let mut exit_codes = known(2);
        let pieces: Vec<&str> = said.split_inclusive(|_| true).collect();
        assert_eq!(read(&mut exit_codes, &pieces), "oh K3 K3\nno end of linelate\n");
        assert_eq!(exit_codes.of_all(0), Some(vec![0, 141]));
    }

    #[test]
    fn exit_codes_that_are_not_all_there_are_none() {
        for line in [
            "",
            "K3Y\n",
            "K3Y 0 1\n",
            "K3Y 0 1 1\n",
            "K3Y 0 1 2 1\n",
            "K3Y 0 1 -1 1\n",
            "K3Y 0 x 1 0\n",
            "K3Y 0 1 1 1",
        ] {
            let mut exit_codes = known(2);
            read(&mut exit_codes, &[line]);
            assert_eq!(exit_codes.of_all(0), None, "{line:?}");
        }
    }

    #[test]
    fn a_script_that_started_nothing_says_so_by_its_own_exit_code() {
        let mut exit_codes = known(2);
        assert_eq!(read(&mut exit_codes, &["not there whole\n"]), "not there whole\n");
        assert_eq!(exit_codes.of_all(126), Some(vec![126, 126]));
        assert_eq!(exit_codes.of_all(137), None);
    }

    #[test]
    fn what_follows_the_key_is_bounded() {
        let mut exit_codes = known(1);
        for _ in 0..100 {
            exit_codes.own_part(Bytes::from("K3Y".repeat(100)));
            assert!(exit_codes.held.len() <= LONGEST_CODES + 300);
        }
        assert_eq!(exit_codes.of_all(0), None);
    }
}
