//! SSH: connections to targets, the configuration and the keys of the account that the server runs as, and the keys that
//! open an account of the target.
//!
//! Private keys are made and never read. No key is removed on which the way into the target may depend: see
//! [`mod@lockout`].
#![forbid(unsafe_code)]

mod account;
mod config;
mod connection;
pub mod host;
mod key_argument;
mod key_options;
mod keys_file;
mod lockout;
mod ssh_authorized_keys;
mod ssh_connect;
mod ssh_copy_id;
mod ssh_disconnect;
mod ssh_key_generate;
mod ssh_key_list;
mod ssh_session_info;
mod ssh_test_connection;
mod sshd;

use linux_sysadmin_sdk::sshd::{SETTINGS, SETTINGS_AT_PORT};
use linux_sysadmin_sdk::{accounts::GETENT_PASSWD, prelude::*};

/// The usual places of included configuration files. Other included files aren't read, and the reply says so, because any
/// file below `.ssh` may be a private key.
const INCLUDED: [&str; 8] = [
    "/**/.ssh/config.d/**",
    "/**/.ssh/conf.d/**",
    "/**/.ssh/*.conf",
    "/**/.ssh/*config",
    "/**/.ssh/*/config",
    "/**/ssh/config",
    "/etc/ssh/ssh_config",
    "/etc/ssh/ssh_config.d/*",
];

/// The module.
pub fn module() -> Module {
    let module =
        Module::new("ssh", env!("CARGO_PKG_VERSION"), "ssh", "Connections, SSH configuration and SSH keys")
            .license(env!("CARGO_PKG_LICENSE"))
            .grants(commands)
            .grants(files);
    tools(module)
}

fn commands(module: Module) -> Module {
    let generate = CommandGrant::change(
        ssh_key_generate::GENERATE,
        Risk::Low,
        "to make a key pair, never over another one",
    );
    module
        .command(GETENT_PASSWD.read("where an account's home is"))
        .command(account::HOME.read("whether a home is a directory, and not a link"))
        .command(SETTINGS.read("where sshd looks for an account's keys").as_root_if_available())
        .command(
            SETTINGS_AT_PORT.read("the same where a Match block asks for the port").as_root_if_available(),
        )
        .command(ssh_key_generate::ABSENT.read("that no public key is written over"))
        .command(generate.as_caller())
        .command(ssh_key_generate::REMOVE.change(Risk::Low, "to undo a new key pair").as_caller())
}

fn files(module: Module) -> Module {
    let reason = "who gets into an account by which key";
    let other = "whether a key that is removed opens the account all the same";
    let made = "to make the directory of keys";
    module
        .path(PathGrant::write("/**/.ssh/authorized_keys", reason).as_caller())
        .path(PathGrant::write("/**/.ssh/authorized_keys", reason).as_user("*"))
        .path(PathGrant::write("/root/.ssh/authorized_keys", reason))
        .path(PathGrant::read("/**/.ssh/authorized_keys2", other).as_caller())
        .path(PathGrant::read("/**/.ssh/authorized_keys2", other).as_user("*"))
        .path(PathGrant::read("/root/.ssh/authorized_keys2", other).as_root())
        .path(PathGrant::write("/**/.ssh", made).as_caller())
        .path(PathGrant::write("/**/.ssh", made).as_user("*"))
        .path(PathGrant::write("/root/.ssh", made))
        .path(PathGrant::write("/**/.ssh/config", "hosts of the SSH configuration").as_caller())
        .path(PathGrant::read("/**/.ssh/*.pub", "the public half of a new key pair"))
        .paths(INCLUDED.map(|glob| PathGrant::read(glob, "what the SSH configuration includes")))
}

fn tools(module: Module) -> Module {
    module
        .tool(
            Tool::new("ssh_connect", "Connect to a host", ssh_connect::ssh_connect)
                .risk(Risk::Moderate)
                .on_controller(),
        )
        .tool(
            Tool::new("ssh_disconnect", "End a connection", ssh_disconnect::ssh_disconnect)
                .risk(Risk::Low)
                .on_controller(),
        )
        .tool(Tool::new(
            "ssh_session_info",
            "The connection: latency, cipher, channels",
            ssh_session_info::ssh_session_info,
        ))
        .tool(
            Tool::new(
                "ssh_test_connection",
                "Try a connection, and end it again",
                ssh_test_connection::ssh_test_connection,
            )
            .helps("CONNECTION_FAILED", "See where it ends: ssh_test_connection host=<host>")
            .helps(
                "AUTHENTICATION_FAILED",
                "See which key is offered and what is refused: ssh_test_connection host=<host>",
            )
            .on_controller(),
        )
        .tool(
            Tool::new(
                "ssh_config_list",
                "Hosts of the server's ~/.ssh/config",
                config::ssh_config_list::ssh_config_list,
            )
            .on_controller(),
        )
        .tool(
            Tool::new(
                "ssh_config_add",
                "Add a host to the server's ~/.ssh/config, or change it",
                config::ssh_config_add::ssh_config_add,
            )
            .risk(Risk::Moderate)
            .on_controller(),
        )
        .tool(
            Tool::new(
                "ssh_key_list",
                "The server's own SSH keys, and what is wrong with them",
                ssh_key_list::ssh_key_list,
            )
            .on_controller(),
        )
        .tool(
            Tool::new(
                "ssh_key_generate",
                "New SSH key pair for the server, without a passphrase",
                ssh_key_generate::ssh_key_generate,
            )
            .loses_nothing()
            .risk(Risk::Low)
            .on_controller(),
        )
        .tool(
            Tool::new(
                "ssh_authorized_keys",
                "Keys that open an account: list, add, remove",
                ssh_authorized_keys::ssh_authorized_keys,
            )
            .risk(Risk::High),
        )
        .tool(
            Tool::new("ssh_copy_id", "Let the server's key open an account", ssh_copy_id::ssh_copy_id)
                .loses_nothing()
                .idempotent()
                .risk(Risk::Moderate),
        )
}

linux_sysadmin_sdk::export!(module);
