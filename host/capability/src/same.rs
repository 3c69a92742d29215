//! Whether two requests ask for the same. The reasons are a module's own words, which its next version may put differently
//! without asking for anything else.

use super::concern::Request;
use super::request::{
    AnyProgramRequest, CommandRequest, OwnProgramRequest, PathRequest, Requests, SignalRequest,
};

impl Request<'_> {
    /// Whether both are the same but for the reason.
    pub fn asks_the_same(&self, other: &Request<'_>) -> bool {
        match (*self, *other) {
            (Request::Command(one), Request::Command(other)) => {
                *one == CommandRequest { reason: one.reason.clone(), ..other.clone() }
            }
            (Request::Path(one), Request::Path(other)) => {
                *one == PathRequest { reason: one.reason.clone(), ..other.clone() }
            }
            (Request::AnyProgram(one), Request::AnyProgram(other)) => {
                *one == AnyProgramRequest { reason: one.reason.clone(), ..other.clone() }
            }
            (Request::Signals(one), Request::Signals(other)) => {
                *one == SignalRequest { reason: one.reason.clone(), ..other.clone() }
            }
            (Request::OwnProgram(one), Request::OwnProgram(other)) => {
                *one == OwnProgramRequest { reason: one.reason.clone(), ..other.clone() }
            }
            (Request::Tool(one), Request::Tool(other)) => one == other,
            _ => false,
        }
    }

    /// What is asked for, as the module writes it. None where that has no text of its own.
    pub fn text(&self) -> Option<&str> {
        match self {
            Request::Command(request) => Some(&request.pattern),
            Request::Path(request) => Some(&request.glob),
            Request::OwnProgram(request) => Some(&request.path),
            Request::Tool(name) => Some(name),
            Request::AnyProgram(_) | Request::Signals(_) => None,
        }
    }

    /// The reason in the module's words. None where the contract has none for it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Request::Command(request) => Some(&request.reason),
            Request::Path(request) => Some(&request.reason),
            Request::OwnProgram(request) => Some(&request.reason),
            Request::AnyProgram(request) => Some(&request.reason),
            Request::Signals(request) => Some(&request.reason),
            Request::Tool(_) => None,
        }
    }
}

impl Requests {
    /// Whether one of these asks for the same as this request, for whatever reason.
    pub fn ask_for(&self, request: &Request<'_>) -> bool {
        let commands = self.commands.iter().map(Request::Command);
        let paths = self.paths.iter().map(Request::Path);
        let programs = self.any_program.iter().map(Request::AnyProgram);
        let signals = self.signals.iter().map(Request::Signals);
        let own = self.own_programs.iter().map(Request::OwnProgram);
        let tools = self.tools.iter().map(Request::Tool);
        let mut all = commands.chain(paths).chain(programs).chain(signals).chain(own).chain(tools);
        all.any(|one| one.asks_the_same(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effect, Place};
    use host_base::{Privilege, Risk};

    fn command(change: impl FnOnce(&mut CommandRequest)) -> CommandRequest {
        let mut request = CommandRequest {
            pattern: "systemctl restart -- <unit>".to_owned(),
            effect: Effect::Change,
            privilege: Privilege::Root,
            place: Place::Target,
            risk: Risk::Moderate,
            reason: "to restart".to_owned(),
        };
        change(&mut request);
        request
    }

    #[test]
    fn another_reason_is_the_same_request_and_anything_else_is_another() {
        let granted = Requests { commands: vec![command(|_| {})], ..Requests::default() };
        let asks = |request: &CommandRequest| granted.ask_for(&Request::Command(request));
        assert!(asks(&command(|request| request.reason = "to restart what hangs".to_owned())));
        let changes: [fn(&mut CommandRequest); 5] = [
            |request| request.pattern.push_str("..."),
            |request| request.effect = Effect::DryRun,
            |request| request.privilege = Privilege::Caller,
            |request| request.place = Place::Controller,
            |request| request.risk = Risk::Low,
        ];
        for change in changes {
            assert!(!asks(&command(change)));
        }
    }

    #[test]
    fn requests_of_different_kinds_are_never_the_same() {
        let name = "systemctl".to_owned();
        let tool = Requests { tools: vec![name.clone()], ..Requests::default() };
        assert!(tool.ask_for(&Request::Tool(&name)));
        let path = |write| PathRequest {
            glob: name.clone(),
            write,
            privilege: Privilege::Caller,
            place: Place::Target,
            reason: String::new(),
        };
        assert!(!tool.ask_for(&Request::Path(&path(false))));
        let paths = Requests { paths: vec![path(false)], ..Requests::default() };
        assert!(paths.ask_for(&Request::Path(&path(false))) && !paths.ask_for(&Request::Path(&path(true))));
        assert!(!paths.ask_for(&Request::Tool(&name)));
    }
}
