//! The effective configuration of the target's sshd, as `sshd -T` prints it: with every default, after every `Include`, and
//! with the `Match` blocks that apply to one account and one address.
//!
//! sshd tells its configuration to root only, because it reads the host keys first.

use crate::{CommandLine, Context, Privilege, Problem, Result};

/// Prints sshd's settings for one account and the address of a connection. A module that calls [`settings`] needs this
/// grant and the next one.
pub const SETTINGS: CommandLine = CommandLine::new("sshd -T -C user=<user>,host=<address>,addr=<address>");
/// The same where a `Match` block asks for the local port.
pub const SETTINGS_AT_PORT: CommandLine =
    CommandLine::new("sshd -T -C user=<user>,host=<address>,addr=<address>,lport=<port>");

/// The address that is used where the client's address isn't known.
pub const HERE: &str = "127.0.0.1";

/// The files in which sshd looks for keys by default.
pub const KEY_FILES: &str = ".ssh/authorized_keys .ssh/authorized_keys2";

/// The port that is tried first where a `Match` block asks for the local port.
const PORT: &str = "22";

/// The effective settings for one account and one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Reads the output of `sshd -T`: a keyword in lower case and its value in each line.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.trim_end().split_once(' '));
        Self(lines.map(|(keyword, value)| (keyword.to_ascii_lowercase(), value.trim().to_owned())).collect())
    }

    /// The first value of a keyword, in whatever case the keyword is given. `None` where this sshd doesn't know the keyword.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.all(keyword).next()
    }

    /// The values of a keyword that may stand in several lines, such as `AllowUsers`.
    pub fn all(&self, keyword: &str) -> impl Iterator<Item = &str> {
        let is_it = move |(known, _): &&(String, String)| known.eq_ignore_ascii_case(keyword);
        self.0.iter().filter(is_it).map(|(_, value)| value.as_str())
    }

    /// Whether a keyword has this value.
    pub fn is(&self, keyword: &str, value: &str) -> bool {
        self.get(keyword) == Some(value)
    }
}

/// The address from which the target is reached over SSH.
pub fn client(cx: &Context) -> Option<String> {
    cx.distro().extra.into_iter().find(|(name, _)| name == "ssh_client").map(|(_, address)| address)
}

/// Asks sshd for the settings of these accounts for the connection's address, at the same time. The results are in the order
/// of the accounts.
///
/// Problems: `COMMAND_FAILED` with what sshd says where it can't read its configuration.
pub fn settings<S: AsRef<str>>(accounts: &[S], cx: &Context) -> Vec<Result<Settings>> {
    let address = client(cx).unwrap_or_else(|| HERE.to_owned());
    let ask = |port: Option<&str>| {
        let command = |account: &S| {
            let account = account.as_ref();
            let command = match port {
                None => SETTINGS.with([account, &address, &address]),
                Some(port) => SETTINGS_AT_PORT.with([account, &address, &address, port]),
            };
            command.privilege(Privilege::RootIfAvailable)
        };
        let said = cx.run_all(accounts.iter().map(command).collect());
        said.into_iter().map(|said| Ok(Settings::parse(&said?.success("sshd")?.text()))).collect::<Vec<_>>()
    };
    let first = ask(None);
    let wants_port = |said: &Result<Settings>| said.as_ref().is_err_and(needs_port);
    if !first.iter().any(wants_port) {
        return first;
    }
    let usual = ask(Some(PORT));
    let port = usual.iter().flatten().find_map(|settings| settings.get("port")).unwrap_or(PORT).to_owned();
    if port == PORT { usual } else { ask(Some(&port)) }
}

fn needs_port(problem: &Problem) -> bool {
    problem.message.contains("'lport' not in connection test specification")
}

/// A path of `AuthorizedKeysFile` with its tokens expanded (sshd_config(5), TOKENS). A relative path is below the home.
pub fn expanded(file: &str, name: &str, uid: u32, home: &str) -> String {
    let mut path = String::new();
    let mut rest = file.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            path.push(character);
            continue;
        }
        match rest.next() {
            Some('h') => path.push_str(home),
            Some('u') => path.push_str(name),
            Some('U') => path.push_str(&uid.to_string()),
            other => path.extend(other),
        }
    }
    if path.starts_with('/') { path } else { format!("{home}/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::FakeTarget;

    const ROOT: &str = "user=root,host=192.0.2.1,addr=192.0.2.1";

    fn target() -> FakeTarget {
        let mut target = FakeTarget::new();
        target.distro.extra.push(("ssh_client".to_owned(), "192.0.2.1".to_owned()));
        target
    }

    #[test]
    fn a_keyword_may_have_several_lines_and_a_value_several_words() {
        let settings = Settings::parse(
            "port 22\nallowusers ada\nallowusers bob@192.0.2.*\nbanner none\nodd\n\nsubsystem sftp x -y\n",
        );
        assert_eq!(settings.get("Port"), Some("22"));
        assert_eq!(settings.all("AllowUsers").collect::<Vec<_>>(), ["ada", "bob@192.0.2.*"]);
        assert!(settings.is("Subsystem", "sftp x -y") && settings.get("odd").is_none());
        assert_eq!(Settings::parse(""), Settings::default());
    }

    #[test]
    fn the_local_port_is_said_where_a_match_block_asks_for_it() {
        // The message of OpenSSH 9.2p1 (Debian 12).
        let refused = "'Match LocalPort' in configuration but 'lport' not in connection test specification.";
        let at = |port: &str| format!("{ROOT},lport={port}");
        let cx = target()
            .answer(&["sshd", "-T", "-C", ROOT], 255, "", refused)
            .answer(&["sshd", "-T", "-C", &at("22")], 0, "port 2222\nx11forwarding no\n", "")
            .answer(&["sshd", "-T", "-C", &at("2222")], 0, "port 2222\nx11forwarding yes\n", "")
            .context();
        let said = settings(&["root"], &cx).remove(0).unwrap();
        assert!(said.is("X11Forwarding", "yes"));
    }

    #[test]
    fn what_sshd_says_of_its_configuration_is_the_problem() {
        // Recorded with OpenSSH 9.2p1 (Debian 12).
        let said = "/etc/ssh/sshd_config: line 1: Bad configuration option: PermitRootLogn\n\
                    /etc/ssh/sshd_config: terminating, 1 bad configuration options\n";
        let cx = target().answer(&["sshd", "-T", "-C", ROOT], 255, "", said).context();
        let problem = settings(&["root"], &cx).remove(0).unwrap_err();
        assert!(problem.message.contains("line 1: Bad configuration option"), "{}", problem.message);
    }

    #[test]
    fn tokens_of_a_path_are_expanded() {
        for (file, expected) in [
            (".ssh/authorized_keys", "/home/ada/.ssh/authorized_keys"),
            ("%h/keys", "/home/ada/keys"),
            ("/etc/ssh/keys/%u", "/etc/ssh/keys/ada"),
            ("/x/%U/100%%", "/x/1000/100%"),
        ] {
            assert_eq!(expanded(file, "ada", 1000, "/home/ada"), expected);
        }
    }
}
