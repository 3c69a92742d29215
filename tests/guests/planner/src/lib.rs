//! A module for the tests: it applies any plan that it is given, well-meant or not, once, twice, or from a tool that says it
//! only looks. Its grants say what it may do, and the tests check that the host keeps to them.
#![forbid(unsafe_code)]

mod plan;

use std::time::Duration;

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::{DurationCategory, Privilege};

use plan::{Plan, Rights};

#[derive(Deserialize, JsonSchema)]
struct Apply {
    plan: Plan,
    /// Files that are read before the plan is handed over. A missing file is no error.
    #[serde(default)]
    read: Vec<String>,
    /// The rights with which these files are read.
    #[serde(default)]
    read_as: Rights,
    /// The file for which the module waits after reading; it says "paused" as its progress meanwhile.
    pause_file: Option<String>,
    /// Answers with success even where the plan has failed.
    #[serde(default)]
    swallow: bool,
}

#[derive(Serialize)]
struct Answer {
    applied: Done,
}

#[derive(Default, Serialize)]
struct Done {
    outputs: Vec<Said>,
    dry_run: bool,
}

#[derive(Serialize)]
struct Said {
    exit_code: i32,
    stdout: String,
    stderr: String,
}

impl From<Applied> for Done {
    fn from(applied: Applied) -> Self {
        let said = |output: &Output| Said {
            exit_code: output.exit_code,
            stdout: output.text().into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        Self { outputs: applied.outputs.iter().map(said).collect(), dry_run: applied.dry_run }
    }
}

fn apply(args: Apply, cx: &Context) -> Result<Single<Answer>> {
    let files = cx.files_as(args.read_as.into());
    let _ = files.read_all(&args.read);
    if let Some(path) = args.pause_file {
        cx.progress(None, "paused");
        let root = cx.files_as(Privilege::Root);
        while root.stat_all(&[&path]).remove(0)?.is_none() {
            cx.sleep(Duration::from_millis(50));
        }
    }
    let applied = match cx.apply(args.plan.into()) {
        Ok(applied) => applied.into(),
        Err(_) if args.swallow => Done::default(),
        Err(failure) => return Err(failure.into()),
    };
    Ok(Single(Answer { applied }))
}

#[derive(Deserialize, JsonSchema)]
struct Twice {
    first: Plan,
    second: Plan,
}

fn twice(args: Twice, cx: &Context) -> Result<Single<Answer>> {
    cx.apply(args.first.into())?;
    let applied = cx.apply(args.second.into())?.into();
    Ok(Single(Answer { applied }))
}

fn changes(module: Module) -> Module {
    let change = |module: Module, pattern: &str| {
        module.command(CommandGrant::change(pattern, Risk::Moderate, "a step"))
    };
    let patterns = [
        "touch -- <path:/srv/plan/**>",
        "rm -- <path:/srv/plan/**>",
        "rmdir -- <path:/srv/plan/**>",
        "tee [--append] -- <path:/srv/plan/**> < stdin",
        "false",
        "sleep <int>",
        "cat -- <path:/srv/plan/**>",
        "systemctl (start|stop|restart|reload|enable|disable) -- <unit>",
        "systemctl daemon-reload",
        "ip link set dev <interface> (up|down)",
        "ip route (add|del) <cidr> dev <interface>",
    ];
    patterns.into_iter().fold(module, change)
}

/// The module.
pub fn module() -> Module {
    let module =
        Module::new("planner", env!("CARGO_PKG_VERSION"), "planner", "Applies the plan it is told to");
    changes(module)
        // Where two grants match, the graver one counts.
        .command(CommandGrant::change(
            "systemctl stop -- systemd-networkd.service",
            Risk::Critical,
            "a way in",
        ))
        .command(CommandGrant::change("id --user", Risk::Low, "to show whose rights").as_caller())
        .command(CommandGrant::read("true", "to look").as_root())
        .command(CommandGrant::read("visudo -cf <path:/etc/sudoers.d/*>", "to validate").as_root())
        .command(CommandGrant::read("test -s <path:/srv/planner/*>", "to validate").as_root())
        .command(CommandGrant::dry_run("echo <text>", "to simulate").as_root())
        .command(CommandGrant::dry_run("test -d <path:/srv/planner/*>", "to simulate").as_root())
        .path(PathGrant::read("/run/planner/*", "to wait for").as_root())
        .path(PathGrant::write("/srv/plan/**", "files"))
        .path(PathGrant::write("/srv/planner/*", "files"))
        .path(PathGrant::write("/srv/planner.conf.d/*", "files of a directory whose names are all read"))
        .path(PathGrant::write("/etc/sudoers.d/*", "files with a validator"))
        .path(PathGrant::write("/home/*/.planner/*", "files in homes, which root must not touch"))
        .path(PathGrant::write("/home/*/.planner/*", "files in a home").as_user("admin"))
        .tool(
            Tool::new("planner_apply", "", apply)
                .risk(Risk::Moderate)
                .duration(DurationCategory::Slow)
                .alias("planner_execute")
                .argument_alias("change", "plan"),
        )
        .tool(Tool::new("planner_apply_readonly", "", apply))
        .tool(Tool::new("planner_twice", "", twice).risk(Risk::Moderate))
}

linux_sysadmin_sdk::export!(module);
