//! Sorts the requests of a module by what an operator should look at first. The host decides the order: how a module
//! describes its own requests doesn't matter.

use super::hole::HoleType;
use super::path::Glob;
use super::pattern::Pattern;
use super::request::{
    AnyProgramRequest, CommandRequest, Effect, OwnProgramRequest, PathRequest, Requests, SignalRequest,
};
use super::reviewed::review;
use host_base::Privilege;

/// One request of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A request for a command line.
    Command(&'a CommandRequest),
    /// A request for files.
    Path(&'a PathRequest),
    /// A request for any program.
    AnyProgram(&'a AnyProgramRequest),
    /// A request for signals to processes.
    Signals(&'a SignalRequest),
    /// A request for a program of the module's own.
    OwnProgram(&'a OwnProgramRequest),
    /// A request for another module's tool, by its name.
    Tool(&'a String),
}

/// The reason why an operator should look at a request; the gravest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// The module runs any program.
    AnyProgram,
    /// The command takes any arguments at all.
    Anything,
    /// The module puts a program of its own on the target, which root runs.
    OwnProgram,
    /// The module ends or stops processes of its own choice.
    Signals,
    /// The command is not among those that were found to be harmless, or plans write the files: the content of files
    /// decides what programs do.
    NotReviewed,
    /// The files hold secrets, for this reason.
    Secret(&'static str),
    /// The module calls another module's tool, which looks with the grants of that module.
    Tool,
    /// The module reads other files.
    Files,
    /// The command was found to be harmless for any values, for this reason.
    Reviewed(&'static str),
}

/// Sorts all requests, the gravest first, and those for root's rights before others.
pub fn by_concern(requests: &Requests) -> Vec<(Concern, Request<'_>)> {
    let commands =
        requests.commands.iter().map(|request| (concern_of_command(request), Request::Command(request)));
    let paths = requests.paths.iter().map(|request| (concern_of_path(request), Request::Path(request)));
    let programs =
        requests.any_program.iter().map(|request| (Concern::AnyProgram, Request::AnyProgram(request)));
    let signals = requests.signals.iter().map(|request| (Concern::Signals, Request::Signals(request)));
    let own = requests.own_programs.iter();
    let own = own.map(|request| (Concern::OwnProgram, Request::OwnProgram(request)));
    let tools = requests.tools.iter().map(|request| (Concern::Tool, Request::Tool(request)));
    let mut all: Vec<_> =
        programs.chain(own).chain(signals).chain(commands).chain(paths).chain(tools).collect();
    all.sort_by_key(|(concern, request)| match request {
        Request::Command(request) => {
            (*concern, rank(&request.privilege), std::cmp::Reverse((request.effect, request.risk)))
        }
        Request::AnyProgram(request) => (
            *concern,
            rank(&request.privilege),
            std::cmp::Reverse((Effect::Change, host_base::Risk::Critical)),
        ),
        Request::Signals(request) => {
            (*concern, rank(&request.privilege), std::cmp::Reverse((Effect::Change, host_base::Risk::High)))
        }
        Request::OwnProgram(_) => {
            (*concern, rank(&Privilege::Root), std::cmp::Reverse((Effect::Change, host_base::Risk::High)))
        }
        Request::Tool(_) => {
            (*concern, rank(&Privilege::Root), std::cmp::Reverse((Effect::Read, host_base::Risk::ReadOnly)))
        }
        Request::Path(request) => {
            let effect = if request.write { Effect::Change } else { Effect::Read };
            (*concern, rank(&request.privilege), std::cmp::Reverse((effect, host_base::Risk::ReadOnly)))
        }
    });
    all
}

fn concern_of_command(request: &CommandRequest) -> Concern {
    let takes_anything = match Pattern::parse(&request.pattern) {
        Ok(pattern) => pattern.holes().any(|hole| *hole == HoleType::Arg),
        Err(_) => true,
    };
    if takes_anything {
        Concern::Anything
    } else {
        review(request).map_or(Concern::NotReviewed, |review| Concern::Reviewed(review.reason()))
    }
}

fn concern_of_path(request: &PathRequest) -> Concern {
    let secret = Glob::parse(&request.glob).ok().and_then(|glob| glob.names_secret());
    match secret {
        Some(reason) => Concern::Secret(reason),
        None if request.write => Concern::NotReviewed,
        None => Concern::Files,
    }
}

fn rank(privilege: &Privilege) -> u8 {
    match privilege {
        Privilege::Root | Privilege::RootIfAvailable => 0,
        Privilege::User(_) => 1,
        Privilege::Caller => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use host_base::Risk;

    fn command(pattern: &str, effect: Effect, privilege: Privilege) -> CommandRequest {
        let (pattern, place, risk) = (pattern.to_owned(), Place::Target, Risk::ReadOnly);
        CommandRequest { pattern, effect, privilege, place, risk, reason: "harmless, really".to_owned() }
    }

    fn path(glob: &str, privilege: Privilege) -> PathRequest {
        let (glob, place) = (glob.to_owned(), Place::Target);
        PathRequest { glob, write: false, privilege, place, reason: String::new() }
    }

    fn written(glob: &str, privilege: Privilege) -> PathRequest {
        PathRequest { write: true, ..path(glob, privilege) }
    }

    #[test]
    fn the_gravest_comes_first() {
        let requests = Requests {
            commands: vec![
                command("uptime", Effect::Read, Privilege::Caller),
                command("cat -- <path:/srv/*>", Effect::Read, Privilege::Caller),
                command("systemctl restart -- <unit>", Effect::Change, Privilege::Root),
                command("visudo -c", Effect::Read, Privilege::Root),
                command("podman exec -- <arg>...", Effect::Change, Privilege::Caller),
            ],
            paths: vec![
                path("/etc/**", Privilege::Caller),
                path("/proc/*/environ", Privilege::Root),
                written("/etc/x/*", Privilege::Root),
                written("/home/*/.x", Privilege::Caller),
                written("/etc/gshadow", Privilege::Root),
            ],
            any_program: vec![AnyProgramRequest {
                privilege: Privilege::Caller,
                place: Place::Target,
                reason: String::new(),
            }],
            signals: vec![SignalRequest {
                privilege: Privilege::Caller,
                place: Place::Target,
                reason: String::new(),
            }],
            own_programs: vec![OwnProgramRequest {
                path: "/usr/local/lib/x".to_owned(),
                sha256: "0".repeat(64),
                reason: String::new(),
            }],
            tools: vec!["others_look".to_owned()],
        };
        let shown: Vec<String> = by_concern(&requests)
            .iter()
            .map(|(concern, request)| match request {
                Request::Command(request) => format!("{concern:?} {}", request.pattern),
                Request::Path(request) => format!("{concern:?} {}", request.glob),
                Request::Tool(name) => format!("{concern:?} {name}"),
                Request::AnyProgram(_) | Request::Signals(_) | Request::OwnProgram(_) => {
                    format!("{concern:?}")
                }
            })
            .collect();
        assert_eq!(shown[0], "AnyProgram");
        let shown = &shown[1..];
        assert_eq!(shown[0], "Anything podman exec -- <arg>...");
        assert_eq!(shown[1..3], ["OwnProgram", "Signals"]);
        let shown = &shown[2..];
        assert_eq!(shown[1], "NotReviewed systemctl restart -- <unit>");
        // A file that is written comes before one that is only read, whatever rights that takes.
        assert_eq!(shown[2], "NotReviewed /etc/x/*");
        assert_eq!(shown[3], "NotReviewed visudo -c");
        assert_eq!(shown[4], "NotReviewed /home/*/.x");
        assert_eq!(shown[5], "NotReviewed cat -- <path:/srv/*>");
        assert!(shown[6].starts_with("Secret(") && shown[6].ends_with(" /etc/gshadow"), "{}", shown[6]);
        assert!(shown[7].starts_with("Secret(") && shown[7].ends_with(" /proc/*/environ"), "{}", shown[7]);
        assert_eq!(shown[8], "Tool others_look");
        assert_eq!(shown[9], "Files /etc/**");
        assert!(shown[10].starts_with("Reviewed(") && shown[10].ends_with(" uptime"), "{}", shown[10]);
    }
}
