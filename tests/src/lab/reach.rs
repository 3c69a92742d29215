//! Checks whether the program reaches a host by the account's SSH configuration, and which host it reaches.

use std::process::Output;

use serde_json::{Value, json};

use crate::{Key, Lab, Sshd};

/// The port of the second sshd that a test uses where it needs one.
const PORT: u16 = 2201;

impl Lab {
    /// Makes an account with the module `parrot`, by which [`Self::reaches`] finds out on which host a call runs.
    pub fn with_parrot(test: &str) -> Option<Self> {
        let lab = Self::new(test)?;
        lab.add("parrot");
        Some(lab)
    }

    /// Starts a second sshd on this host with these settings. It logs everything, and its key is known. The SSH configuration
    /// knows only this sshd, as `there`, with these lines.
    pub fn other(&self, host: &str, settings: &str, lines: &str) -> Sshd {
        let sshd = self.sshd(host, PORT);
        let file = self.file("host");
        let key = if file.exists() { Key { file } } else { self.key("host", "ed25519") };
        self.know(&format!("{} {}", sshd.known_as(), key.public()));
        sshd.start(&[&key], &format!("LogLevel DEBUG1\n{settings}"));
        self.configure_other(host, lines);
        sshd
    }

    /// Writes the same configuration with other lines.
    pub fn configure_other(&self, host: &str, lines: &str) {
        let (address, port) = (self.address(host), PORT);
        self.configure(&format!("Host there\n  HostName {address}\n  Port {port}\n{lines}\n  User root\n"));
    }

    /// Calls a tool once on the machine of this alias; gives the envelope and the program's stderr.
    #[track_caller]
    pub fn call(&self, alias: &str, tool: &str, arguments: &Value) -> (Value, String) {
        let arguments = arguments.to_string();
        let mut call = self.program(&["call", "--host", alias, tool, "--args", &arguments]);
        answered(&call.output().expect("ip runs"))
    }

    /// Makes a call that looks at the machine of this alias; gives the envelope.
    #[track_caller]
    pub fn look(&self, alias: &str) -> Value {
        self.call(alias, "parrot_read", &json!({"path": "/etc/hostname"})).0
    }

    /// Asserts that the program reaches this host by this alias.
    #[track_caller]
    pub fn reaches(&self, alias: &str, host: &str) {
        let envelope = self.look(alias);
        assert_eq!(envelope["data"]["text"], format!("{}\n", self.host(host).name()), "{alias}: {envelope}");
    }

    /// Asserts that a connection to this alias fails with this code; gives the envelope.
    #[track_caller]
    pub fn misses(&self, alias: &str, code: &str) -> Value {
        let envelope = self.look(alias);
        assert_eq!(envelope["error_code"], code, "{alias}: {envelope}");
        envelope
    }
}

#[track_caller]
fn answered(output: &Output) -> (Value, String) {
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let envelope = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no envelope: {text}{said}"));
    (envelope, said.into_owned())
}
