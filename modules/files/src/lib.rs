//! The tools for files: read, list, search, patch, write, copy, move and remove them.
//!
//! Reads and plans go through path grants, which exclude secrets, and leave out [private files](private). Commands only list
//! names and metadata, or narrow a search down to files that are then read; none of them shows contents.
#![forbid(unsafe_code)]

mod checkers;
mod closed;
mod copy;
mod decode;
mod effects;
mod find;
mod lines;
mod list;
mod mkdir;
mod move_;
mod original;
mod owner;
mod patch;
mod patch_files;
mod places;
mod plan;
mod private;
mod read;
mod remove;
mod search;
mod service;
mod stat;
mod write;

use linux_sysadmin_sdk::{DurationCategory, paths::LSATTR, prelude::*};

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module = Module::new("files", env!("CARGO_PKG_VERSION"), "files", "Files and directories")
        .license(env!("CARGO_PKG_LICENSE"))
        .grants(grants);
    changing(looking(module))
}

fn grants(module: Module) -> Module {
    let anyone = |grant: CommandGrant| [grant.clone().as_root_if_available(), grant.as_user("*")];
    module
        .paths(places::grants())
        .commands(anyone(original::READLINK.read("where a symlink leads")))
        .commands(anyone(LSATTR.read("whether a file is immutable")))
        .commands(find::grants())
        .commands(search::grants())
        .commands(stat::grants())
        .commands(owner::grants())
        .commands(checkers::grants())
}

fn looking(module: Module) -> Module {
    module
        .tool(
            Tool::new("file_read", "A file's text, metadata, hash, package, service", read::file_read)
                .first(),
        )
        .tool(
            Tool::new("file_list", "Entries of a directory", list::file_list)
                .helps("FILE_NOT_FOUND", "See what is in the directory: file_list path=<directory>")
                .helps("DIRECTORY_NOT_EMPTY", "See what is in it: file_list path=<path>")
                .argument_alias("directory", "path")
                .argument_alias("dir", "path"),
        )
        .tool(
            Tool::new("file_search", "Lines of files that match", search::file_search)
                .argument_alias("directory", "path")
                .argument_alias("include", "glob")
                .duration(DurationCategory::Normal),
        )
        .tool(
            Tool::new(
                "file_stat",
                "Type, owner, mode, symlinks, ACL, attributes, package, who has it open",
                stat::file_stat,
            )
            .helps("HARD_LINK", "See what it is, and who has it open: file_stat path=<path>")
            .helps("SYMLINK", "See where it leads: file_stat path=<path>")
            .helps("NOT_A_REGULAR_FILE", "See what is there: file_stat path=<path>")
            .helps("UNRESOLVABLE_PATH", "See where the path leads: file_stat path=<path>"),
        )
}

fn changing(module: Module) -> Module {
    let moderate = |tool: Tool| tool.risk(Risk::Moderate).duration(DurationCategory::Normal);
    let from_to = |tool: Tool| {
        let names =
            [("source", "path"), ("src", "path"), ("destination", "to"), ("dest", "to"), ("target", "to")];
        names.into_iter().fold(moderate(tool), |tool, (alias, name)| tool.argument_alias(alias, name))
    };
    module
        .tool(moderate(Tool::new(
            "file_patch",
            "Apply a unified diff; a service's configuration is checked before it stays",
            patch_files::file_patch,
        )))
        .tool(
            moderate(Tool::new("file_write", "Write a whole file", write::file_write).idempotent())
                .argument_alias("text", "contents"),
        )
        .tool(from_to(Tool::new("file_copy", "Copy a file", copy::file_copy).loses_nothing()))
        .tool(from_to(Tool::new("file_move", "Move or rename", move_::file_move).loses_nothing()))
        .tool(
            moderate(
                Tool::new("file_mkdir", "Make a directory and its parents", mkdir::file_mkdir)
                    .loses_nothing(),
            )
            .argument_alias("directory", "path"),
        )
        .tool(moderate(Tool::new(
            "file_remove",
            "Remove files, symlinks and directories",
            remove::file_remove,
        )))
}

linux_sysadmin_sdk::export!(module);
