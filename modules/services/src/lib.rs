//! The tools for services and timers of systemd.
#![forbid(unsafe_code)]

mod changes;
mod excerpt;
mod ports;
mod profile;
mod systemd;
mod tools;
mod unit_files;
mod unit_trouble;

use linux_sysadmin_sdk::processes::replaced_files;
use linux_sysadmin_sdk::{listening, prelude::*, processes};

use profile::{needs_restart, recent_errors};
use systemd::{journal, systemctl};

/// The module, with its tools and grants.
pub fn module() -> Module {
    let module =
        Module::new("services", env!("CARGO_PKG_VERSION"), "services", "Services and timers of systemd")
            .license(env!("CARGO_PKG_LICENSE"))
            .serves("init_system", &["systemd"])
            .grants(systemd_commands)
            .grants(profile_commands)
            .grants(changing_commands)
            .grants(unit_files);
    profile_tools(systemd_tools(module))
}

fn systemd_commands(module: Module) -> Module {
    module
        .command(systemctl::LOADED_SERVICES.read("states of the loaded services"))
        .command(systemctl::SERVICE_FILES.read("which services are installed, and which start at boot"))
        .command(systemctl::TIMER_FILES.read("which timers are installed, and which start at boot"))
        .command(systemctl::STATUS.read("state of one unit"))
        .command(systemctl::TROUBLE.read("why a unit doesn't work"))
        .commands(unit_trouble::grants())
        .command(systemctl::TEXT.read("where the text of a unit is, and what systemd makes of it"))
        .command(systemctl::LOADED_AT.read("when systemd last looked at the unit files"))
        .command(systemctl::UNIT_FILE.read("whether an unknown unit's file is there and can't be read"))
        .command(systemctl::LOADED_UNITS.read("names to suggest for an unknown unit"))
        .command(systemctl::LOADED_TIMERS.read("schedules of the loaded timers"))
        .command(systemctl::TIMERS.read("schedules of timers that are installed only"))
        .command(systemctl::ACTIVATED.read("how the last run of what a timer activates went"))
        .command(systemctl::ELAPSES.read("when the timers elapse next"))
        .command(systemctl::CLOCK.read("the target's own clock, for how long something has been running"))
        .command(systemctl::STATE.read("what can be done with a unit, and what stops along"))
        .command(systemctl::AFTERWARDS.read("what has become of a unit that was changed"))
        .command(systemctl::ACTIVE.read("which of the units that need another one run"))
        .command(systemctl::AROUND.read("what a unit needs, and what wants it"))
        .command(systemctl::CALENDAR.read("whether something is a calendar expression, and when it elapses"))
        .command(systemctl::VERIFY.read("whether a unit file can be loaded, before it is one").as_root())
}

/// The commands for what systemd does not know of a service. A profile grants the commands of its own checks.
fn profile_commands(module: Module) -> Module {
    let module = module.command(needs_restart::grant()).commands(recent_errors::grants());
    module
        .command(journal::grant())
        .command(listening::grant())
        .command(replaced_files::grant())
        .paths(processes::grants())
}

fn changing_commands(module: Module) -> Module {
    let lines = [
        (systemctl::START, "start a unit"),
        (systemctl::STOP, "stop a unit"),
        (systemctl::RESTART, "restart a unit"),
        (systemctl::RELOAD, "have a service read its configuration"),
        (systemctl::ENABLE, "have a unit started at boot"),
        (systemctl::DISABLE, "have it started at boot no more"),
        (systemctl::MASK, "make a unit impossible to start"),
        (systemctl::MASK_RUNTIME, "the same until the next boot"),
        (systemctl::UNMASK, "end that"),
        (systemctl::UNMASK_RUNTIME, "the same for one until the next boot"),
        (systemctl::DAEMON_RELOAD, "have systemd read changed unit files"),
    ];
    module.commands(lines.map(|(line, reason)| line.change(Risk::Moderate, reason)))
}

fn unit_files(module: Module) -> Module {
    /// Where the files of units lie, as systemd.unit(5) lists them.
    const TEXTS: [&str; 10] = [
        "/etc/systemd/system.control/**",
        "/etc/systemd/system/**",
        "/lib/systemd/system/**",
        "/run/systemd/generator.early/**",
        "/run/systemd/generator.late/**",
        "/run/systemd/generator/**",
        "/run/systemd/system.control/**",
        "/run/systemd/system/**",
        "/run/systemd/transient/**",
        "/usr/local/lib/systemd/system/**",
    ];
    let module = TEXTS.iter().fold(module, |module, glob| {
        module.path(PathGrant::read(glob, "the text of units and of their drop-ins").as_root_if_available())
    });
    module
        .path(
            PathGrant::read("/usr/lib/systemd/system/**", "the same, also to be changed in a copy")
                .as_root_if_available(),
        )
        .path(PathGrant::write("/etc/systemd/system/*", "unit files and directories of drop-ins"))
        .path(PathGrant::write("/etc/systemd/system/*/50-linux-sysadmin.conf", "limits of a unit"))
        .path(PathGrant::read(tools::set_limits::MEMORY, "what a percentage of the memory amounts to"))
        .path(PathGrant::read("/proc/*/fd", "how many files a service has open").as_root_if_available())
}

/// The tools about one unit take its name also as `name` and `unit`.
fn of_service(tool: Tool) -> Tool {
    tool.argument_alias("name", "service").argument_alias("unit", "service")
}

/// The tools that need profiles.
fn profile_tools(module: Module) -> Module {
    module
        .tool(of_service(Tool::new(
            "svc_troubleshoot",
            "What is wrong with a service: known checks, or state, log, files and ports; causes with evidence",
            tools::troubleshoot::svc_troubleshoot,
        ).first()))
        .tool(of_service(Tool::new(
            "svc_config_validate",
            "A service's own checker on its configuration on disk: errors with file and line",
            tools::config_validate::svc_config_validate,
        )))
        .tool(
            of_service(Tool::new(
                "svc_config_check",
                "A service's own checker on a given main file that isn't written yet",
                tools::config_check::svc_config_check,
            ))
            .risk(Risk::High),
        )
        .tool(Tool::new(
            "svc_port_audit",
            "Ports that services declare against what listens: missing, taken, exposed, unknown",
            tools::port_audit::svc_port_audit,
        ))
        .tool(of_service(Tool::new(
            "svc_dependency_impact",
            "What stops or gets worse when a service stops, who stands in for it, what it needs itself",
            tools::dependency_impact::svc_dependency_impact,
        )))
}

fn systemd_tools(module: Module) -> Module {
    let changes = |tool: Tool| of_service(tool).risk(Risk::Moderate);
    let timer = |tool: Tool| {
        tool.argument_alias("timer", "name").argument_alias("unit", "service").risk(Risk::Moderate)
    };
    module
        .tool(
            Tool::new("svc_list", "All services and their states, failed ones first", tools::list::svc_list)
                .helps("GUARD_FAILED", "See what has failed: svc_list filter=failed")
                .helps("CHANGE_UNCERTAIN", "See what has failed: svc_list filter=failed"),
        )
        .tool(of_service(Tool::new(
            "svc_status",
            "State of one systemd unit, its health, recent errors, ports, dependants, what needs a restart",
            tools::status::svc_status,
        ).first()))
        .tool(of_service(Tool::new(
            "svc_show",
            "A unit's files and drop-ins by line, what overrides what, and the limits in effect with their use",
            tools::show::svc_show,
        )))
        // A unit that is started ends those that it conflicts with.
        .tool(changes(Tool::new("svc_start", "Start a unit", tools::start::svc_start).idempotent()))
        .tool(changes(Tool::new("svc_stop", "Stop a unit", tools::stop::svc_stop).idempotent()))
        .tool(changes(Tool::new("svc_restart", "Restart a unit, or start it", tools::restart::svc_restart).first()))
        .tool(changes(
            Tool::new("svc_reload", "Have a unit reload its configuration", tools::reload::svc_reload)
                .loses_nothing(),
        ))
        .tool(changes(
            Tool::new("svc_enable", "Have a unit started at boot", tools::enable::svc_enable).idempotent(),
        ))
        .tool(changes(
            Tool::new("svc_disable", "No longer start it at boot", tools::enable::svc_disable).idempotent(),
        ))
        .tool(changes(
            Tool::new(
                "svc_mask",
                "Make a unit impossible to start, also as another's dependency",
                tools::mask::svc_mask,
            )
            .idempotent(),
        ))
        .tool(changes(
            Tool::new("svc_unmask", "Let a masked unit be started again", tools::mask::svc_unmask)
                .loses_nothing()
                .idempotent(),
        ))
        .tool(changes(Tool::new(
            "svc_set_limits",
            "Limit a unit's memory, CPU, IO, tasks, files in a drop-in, applied at once; \"\" unsets one",
            tools::set_limits::svc_set_limits,
        )))
        .tool(changes(
            Tool::new(
                "svc_create_unit",
                "Write a new unit file; needs exec_start or raw_content",
                tools::create_unit::svc_create_unit,
            )
            .loses_nothing(),
        ))
        .tool(
            of_service(Tool::new(
                "svc_edit_unit",
                "Change the given fields of a unit file, \"\" or [] unsets one; a package's is copied to /etc",
                tools::edit_unit::svc_edit_unit,
            ))
            .risk(Risk::High),
        )
        .tool(Tool::new("timer_list", "systemd timers: schedule, next and last run", tools::timer_list::timer_list))
        .tool(timer(
            Tool::new(
                "timer_create",
                "New timer for a unit, or for exec_start",
                tools::timer_create::timer_create,
            )
            .loses_nothing(),
        ))
        .tool(timer(Tool::new(
            "timer_modify",
            "Change the given fields of a timer, \"\" or [] unsets one",
            tools::timer_modify::timer_modify,
        )))
}

linux_sysadmin_sdk::export!(module);
