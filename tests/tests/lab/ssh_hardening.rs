//! sshd is hardened over SSH, by an account that uses sudo, and can be reached afterwards by a new connection. Where it
//! can't, the target itself has put everything back.

use linux_sysadmin_tests::{Client, Lab, Way};
use serde_json::{Value, json};

const DROP_IN: &str = "/etc/ssh/sshd_config.d/00-linux-sysadmin.conf";

/// Settings that the hardening has to win against. Without a cipher of CBC, the ciphers of OpenSSH are hard already.
const PREPARE: &str = r"
printf 'X11Forwarding yes\nMaxAuthTries 9\nPermitEmptyPasswords yes\nLoginGraceTime 0\nCiphers +aes128-cbc\n' \
    > /etc/ssh/sshd_config.d/50-lsa.conf
systemctl reload ssh
";

/// Puts sshd back, also after a failure.
const CLEAN: &str = r"
nft delete table inet lsa_cut
rm -rf /etc/ssh/sshd_config.d/00-linux-sysadmin.conf /etc/ssh/sshd_config.d/50-lsa.conf /run/systemd/system/ssh.service.d
for home in /root /home/admin; do
    test ! -e $home/.ssh/lsa-kept || mv $home/.ssh/lsa-kept $home/.ssh/authorized_keys
done
systemctl daemon-reload
systemctl reset-failed ssh
systemctl restart ssh
";

/// Lets a reload of sshd do this instead.
fn reload_by(command: &str) -> String {
    format!(
        "mkdir -p /run/systemd/system/ssh.service.d
         printf '[Service]\\nRestart=no\\nExecReload=\\nExecReload={command}\\n' \
             > /run/systemd/system/ssh.service.d/lsa.conf
         systemctl daemon-reload"
    )
}

/// A host that nobody else uses, with an sshd that can be hardened.
struct World {
    lab: Lab,
    host: &'static str,
}

impl World {
    fn new(host: &'static str, test: &str) -> Option<Self> {
        let world = Self { lab: Lab::new(test)?, host };
        world.try_sh(CLEAN);
        world.sh(PREPARE);
        Some(world)
    }

    fn sh(&self, script: &str) -> String {
        self.lab.host(self.host).run(&["sh", "-c", script])
    }

    fn try_sh(&self, script: &str) {
        let _ = self.lab.host(self.host).command(&["sh", "-c", script]).output();
    }

    /// A server that reaches the host by a connection of its own, as the account that uses sudo.
    async fn serve(&self) -> Client {
        let alias = self.lab.alias(self.host, "admin");
        let mut client = self.lab.serve(&["--host", &alias]);
        client.can(json!({"elicitation": {"form": {}}}));
        client.initialize("2026-07-28").await;
        client
    }

    /// What sshd says of its settings.
    fn has(&self, setting: &str) -> bool {
        self.lab.host(self.host).holds(&format!("sshd -T | grep --quiet --line-regexp '{setting}'"))
    }

    /// Asserts that the hardening was undone, and that a new connection gets in.
    async fn is_as_before(&self) {
        self.lab.host(self.host).until(&format!("! test -e {DROP_IN} && systemctl is-active --quiet ssh"));
        assert!(self.has("x11forwarding yes"));
        let mut client = self.serve().await;
        assert_eq!(client.envelope("sec_check_ssh", json!({})).await["status"], "success");
        assert!(client.close().await.0.success());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.try_sh(CLEAN);
    }
}

async fn harden(client: &mut Client, actions: &[&str]) -> Value {
    client.agrees(Way::InputRequired, "sec_harden_ssh", json!({"actions": actions})).await
}

/// Weak settings are found, all actions are taken, and a new connection sees a hard sshd.
async fn all_actions(host: &'static str, test: &str) {
    let Some(world) = World::new(host, test) else { return };
    let mut client = world.serve().await;
    let checked = client.envelope("sec_check_ssh", json!({})).await;
    let findings = checked["data"]["findings"].to_string();
    for kind in ["ssh-empty-passwords", "ssh-weak-ciphers", "ssh-auth-tries", "ssh-grace-time"] {
        assert!(findings.contains(kind), "{kind}: {checked}");
    }
    let recommended = checked["data"]["recommended_actions"].as_array().expect("actions").clone();
    assert_eq!(recommended.len(), 10, "{checked}");
    let hardened = client.agrees(Way::InputRequired, "sec_harden_ssh", json!({"actions": recommended})).await;
    assert_eq!(
        (&hardened["status"], &hardened["data"]["file"]),
        (&json!("success"), &json!(DROP_IN)),
        "{hardened}"
    );
    assert_eq!(hardened.get("notes"), None, "{hardened}");
    for setting in [
        "permitrootlogin no",
        "passwordauthentication no",
        "permitemptypasswords no",
        "maxauthtries 3",
        "x11forwarding no",
        "logingracetime 60",
        "allowagentforwarding no",
        "ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-gcm@openssh.com,aes128-ctr",
        "macs hmac-sha2-512-etm@openssh.com,hmac-sha2-256-etm@openssh.com,umac-128-etm@openssh.com",
    ] {
        assert!(world.has(setting), "{setting}");
    }
    assert!(client.close().await.0.success());

    let mut client = world.serve().await;
    let checked = client.envelope("sec_check_ssh", json!({})).await;
    let data = &checked["data"];
    assert_eq!((data.get("findings"), &data["recommended_actions"]), (None, &json!([])), "{checked}");
    // The older name of an action, and nothing to do.
    let again = harden(&mut client, &["disable_x11"]).await;
    assert_eq!((&again["status"], &again["data"]["set"]), (&json!("success"), &json!([])), "{again}");
    assert!(client.close().await.0.success());
}

#[tokio::test]
async fn a_debian_is_hardened_by_all_actions_and_still_reached() {
    all_actions("debian1", "a_debian_is_hardened_by_all_actions_and_still_reached").await;
}

#[tokio::test]
async fn a_fedora_is_hardened_by_all_actions_and_still_reached() {
    all_actions("rhel1", "a_fedora_is_hardened_by_all_actions_and_still_reached").await;
}

#[tokio::test]
async fn what_sshd_cannot_read_and_what_would_lock_everybody_out_is_refused() {
    let test = "what_sshd_cannot_read_and_what_would_lock_everybody_out_is_refused";
    let Some(world) = World::new("debian1", test) else { return };
    let mut client = world.serve().await;
    // The connection is there before the keys are gone.
    let checked = client.envelope("sec_check_ssh", json!({})).await;
    assert_eq!(checked["status"], "success", "{checked}");
    world.sh("for home in /root /home/admin; do mv $home/.ssh/authorized_keys $home/.ssh/lsa-kept; done");
    let refused = harden(&mut client, &["disable_password_auth", "disable_x11_forwarding"]).await;
    assert_eq!(refused["error_code"], "NO_USABLE_KEY", "{refused}");
    world.sh("for home in /root /home/admin; do mv $home/.ssh/lsa-kept $home/.ssh/authorized_keys; done");
    for (text, said) in [
        ("MaxAuthTries many", "MaxAuthTries integer value invalid"),
        ("Include /etc/ssh/sshd_config.d/50-lsa.conf", "Too many recursive configuration includes"),
    ] {
        world.sh(&format!("echo '{text}' > /etc/ssh/sshd_config.d/50-lsa.conf"));
        let refused = harden(&mut client, &["disable_x11_forwarding"]).await;
        assert_eq!(refused["error_code"], "SSHD_CONFIG_INVALID", "{refused}");
        assert!(refused["message"].to_string().contains(said), "{refused}");
        let checked = client.envelope("sec_check_ssh", json!({})).await;
        assert!(checked["data"]["findings"].to_string().contains("ssh-config-invalid"), "{checked}");
    }
    world.sh(PREPARE);
    assert!(client.close().await.0.success());
    world.is_as_before().await;
}

#[tokio::test]
async fn an_sshd_that_ends_on_the_hardening_is_brought_back() {
    let Some(world) = World::new("rhel1", "an_sshd_that_ends_on_the_hardening_is_brought_back") else {
        return;
    };
    world.sh(&reload_by("/bin/kill -KILL $MAINPID"));
    let mut client = world.serve().await;
    let failed = harden(&mut client, &["disable_x11_forwarding"]).await;
    assert_eq!(failed["status"], "error", "{failed}");
    assert!(failed["undone"].to_string().contains(DROP_IN), "{failed}");
    world.is_as_before().await;
}

#[tokio::test]
async fn a_firewall_that_cuts_new_connections_leads_to_the_undo() {
    let test = "a_firewall_that_cuts_new_connections_leads_to_the_undo";
    let Some(world) = World::new("debian1", test) else { return };
    world.sh("printf 'table inet lsa_cut {\\n chain input {\\n  type filter hook input priority 0;\\n\
         tcp dport 22 ct state new drop\\n }\\n}\\n' > /run/lsa-cut.nft");
    // The reload of the undo doesn't cut again: it could come after this test has mended the firewall.
    world.sh(&reload_by(&format!("/bin/sh -c \"test ! -e {DROP_IN} || /usr/sbin/nft -f /run/lsa-cut.nft\"")));
    let mut client = world.serve().await;
    let actions = json!({"actions": ["disable_x11_forwarding"]});
    let asked = client.is_asked(Way::InputRequired, "sec_harden_ssh", actions).await;
    let call = client.begins_to_answer(&asked, "accept").await;
    let host = world.lab.host("debian1");
    host.until("nft list table inet lsa_cut > /dev/null 2>&1");
    host.until(&format!("! test -e {DROP_IN}"));
    // Only now the server gets in again and hears of it.
    world.try_sh(
        "nft delete table inet lsa_cut; rm -r /run/systemd/system/ssh.service.d; systemctl daemon-reload",
    );
    let failed = client.envelope_of(call).await;
    assert_eq!(failed["status"], "error", "{failed}");
    world.is_as_before().await;
}
