//! Users and groups, permissions of files, and sudo.
//!
//! The name service lists the accounts, including those of a directory service. The tools change only /etc/passwd and
//! related files, by the programs that own them. No password is an argument, and no hash is read. See [`mod@lockout`] for
//! the rights that no change may take, and [`mod@user_lock`] for the meaning of a lock.
#![forbid(unsafe_code)]

mod accounts;
mod files;
mod group_create;
mod group_delete;
mod group_list;
mod lockout;
mod perms;
mod plan;
mod processes;
mod shadow_utils;
mod sudoers;
mod user_create;
mod user_delete;
mod user_info;
mod user_list;
mod user_lock;
mod user_modify;
mod validate;

use linux_sysadmin_sdk::{accounts::logins, prelude::*};

/// The module.
pub fn module() -> Module {
    let module =
        Module::new("users", env!("CARGO_PKG_VERSION"), "users", "Users, groups, permissions and sudo")
            .license(env!("CARGO_PKG_LICENSE"))
            .grants(commands)
            .grants(files);
    tools(module)
}

fn commands(module: Module) -> Module {
    let looking = [
        accounts::USERS.read("which accounts there are"),
        accounts::GROUPS.read("which groups there are"),
        accounts::USER.read("an account that a directory doesn't list"),
        accounts::GROUP.read("a group that a directory doesn't list"),
        accounts::CALLER_UID.read("the number of the account in use, where a directory doesn't list it"),
        accounts::CALLER_GROUPS.read("its groups, where a directory doesn't list them"),
        accounts::GROUPS_OF.read("groups that a directory doesn't list"),
        processes::PROCESSES.read("what runs as an account").as_root_if_available(),
    ];
    module
        .commands(looking)
        .commands(logins::grants())
        .commands(perms::check::grants())
        .commands(shadow_utils::grants())
        .commands(perms::set::grants())
        .commands(sudoers::modify::grants())
}

fn files(module: Module) -> Module {
    let sudo = "who may do what by sudo";
    let local = "which accounts are this machine's own, and which numbers people have";
    module
        .paths(accounts::FILES.map(|path| PathGrant::read(path, local)))
        .path(PathGrant::read("/etc/shells", "which shells let somebody log in"))
        .path(PathGrant::read(sudoers::MAIN, sudo).as_root())
        .path(PathGrant::read("/etc/sudoers.d", sudo).as_root())
        .path(PathGrant::read("/etc/sudoers.d/*", sudo).as_root())
        .path(PathGrant::write("/etc/sudoers.d/*", "rules of sudo, which visudo checks first"))
        .path(PathGrant::write(user_lock::RECORDS, "their directory, where there is none"))
        .path(PathGrant::write(
            "/var/lib/linux-sysadmin-locked/*",
            "what an account was like before it was locked",
        ))
}

/// The tools about one account take its name also as `name`.
fn account(tool: Tool) -> Tool {
    tool.argument_alias("name", "user")
}

fn tools(module: Module) -> Module {
    let described = |tool: Tool| account(tool).argument_alias("full_name", "comment");
    module
        .tool(
            Tool::new("user_list", "Accounts, people first", user_list::user_list)
                .helps("USER_NOT_FOUND", "See which accounts there are: user_list")
                .argument_alias("include_system", "kind")
                .value_alias("kind", "true", "all")
                .value_alias("kind", "false", "people"),
        )
        .tool(account(Tool::new("user_info", "All about one account", user_info::user_info)))
        .tool(
            described(
                Tool::new("user_create", "New account, without a password", user_create::user_create)
                    .loses_nothing(),
            )
            .risk(Risk::Moderate),
        )
        .tool(
            described(Tool::new("user_modify", "Change an account", user_modify::user_modify))
                .argument_alias("new_name", "rename")
                .risk(Risk::Moderate),
        )
        .tool(
            account(Tool::new("user_delete", "Delete an account", user_delete::user_delete))
                .risk(Risk::Critical),
        )
        .tool(
            account(
                Tool::new("user_lock", "Nobody logs in to the account, by key either", user_lock::user_lock)
                    .idempotent(),
            )
            .risk(Risk::Moderate),
        )
        .tool(
            account(
                Tool::new("user_unlock", "Undo user_lock", user_lock::user_unlock)
                    .loses_nothing()
                    .idempotent(),
            )
            .risk(Risk::Moderate),
        )
        .tool(
            Tool::new("group_list", "Groups and their members", group_list::group_list)
                .helps("GROUP_NOT_FOUND", "See which groups there are: group_list"),
        )
        .tool(
            Tool::new("group_create", "New group", group_create::group_create)
                .loses_nothing()
                .argument_alias("group", "name")
                .risk(Risk::Moderate),
        )
        .tool(
            Tool::new("group_delete", "Delete a group", group_delete::group_delete)
                .argument_alias("group", "name")
                .risk(Risk::High),
        )
        .tool(
            Tool::new(
                "perms_check",
                "Permissions of a path and the way to it; what a user can do there",
                perms::check::perms_check,
            )
            .helps(
                "PERMISSION_DENIED",
                "See who may reach the path that the message names: perms_check path=<path>",
            )
            .helps(
                "UNTRUSTED_PROGRAM",
                "See who may change it, and the directories above it: perms_check path=<path>",
            )
            .helps(
                "UNTRUSTED_DIRECTORY",
                "See who may change which directory above it: perms_check path=<path>",
            ),
        )
        .tool(
            Tool::new("perms_set", "Set mode, owner, group", perms::set::perms_set)
                .idempotent()
                .risk(Risk::Moderate),
        )
        .tool(Tool::new("sudoers_list", "Rules of sudo, with file and line", sudoers::list::sudoers_list))
        .tool(
            Tool::new("sudoers_modify", "Change a rule in /etc/sudoers.d", sudoers::modify::sudoers_modify)
                .risk(Risk::Critical),
        )
}

linux_sysadmin_sdk::export!(module);
