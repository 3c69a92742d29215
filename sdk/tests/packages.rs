//! What the tools for packages say where a package manager can't do what is asked for, or ends with a code of its own.
#![allow(clippy::unwrap_used)]

use linux_sysadmin_sdk::bindings::sysadmin::module::confirm;
use linux_sysadmin_sdk::packages::{
    self, Available, Backend, Found, Info, Installed, Operation, Remarks, Request, Simulated, Transaction,
    Updates, Verb,
};
use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::{self, FakeTarget};

const LIST: CommandLine = CommandLine::new("toy list");
const REMOVE: CommandLine = CommandLine::new("toy remove -- <package>...");
/// The exit code with which `toy` says that it has done it, and that the machine has to be restarted.
const REBOOT: i32 = 102;

/// A package manager that removes packages, and knows no purge.
struct Toy;

impl Backend for Toy {
    fn module(&self) -> Module {
        Module::new("packages-toy", "1.0.0", "packages", "Packages with toy")
            .command(LIST.read("to see what is installed"))
            .command(REMOVE.change(Risk::High, "to remove packages"))
    }

    fn installed(&self, cx: &Context) -> Result<Vec<Installed>> {
        let said = cx.run(LIST.command())?.success("toy list")?;
        let package = |name: &str| Installed { name: name.to_owned(), ..Installed::default() };
        Ok(said.text().lines().map(package).collect())
    }

    fn search(&self, _: &[String], _: bool, _: &Context) -> Result<Vec<Found>> {
        Ok(Vec::new())
    }

    fn info(&self, _: &str, _: &Context) -> Result<Option<Info>> {
        Ok(None)
    }

    fn versions(&self, _: &str, _: &Context) -> Result<Vec<Available>> {
        Ok(Vec::new())
    }

    fn updates(&self, _: &Context) -> Result<Updates> {
        Ok(Updates::default())
    }

    fn history(&self, _: Option<&str>, _: &Context) -> Result<Vec<Transaction>> {
        Ok(Vec::new())
    }

    fn names(&self, _: &str, _: &Context) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn unknown(&self, _: &[String], _: &Context) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn command(&self, request: &Request, _: &Context) -> Option<Command> {
        match request {
            Request::Remove(names) => Some(REMOVE.with(names).as_root()),
            _ => None,
        }
    }

    fn success_codes(&self) -> &[i32] {
        &[0, REBOOT]
    }

    fn simulate(&self, request: &Request, _: &Context) -> Result<Simulated> {
        // As the scaffold does it: what has no command has no simulation either.
        let Request::Remove(names) = request else { return Ok(Simulated::default()) };
        let remove = |name: &String| Operation::new(Verb::Remove, name, String::new(), String::new());
        Ok(Simulated { operations: names.iter().map(remove).collect(), ..Simulated::default() })
    }

    fn explain(&self, _: &Output, _: &Context) -> Option<Problem> {
        None
    }

    fn remarks(&self, output: &Output, _: &Context) -> Remarks {
        let notes =
            if output.exit_code == REBOOT { vec!["restart the machine".to_owned()] } else { Vec::new() };
        Remarks { notes, ..Remarks::default() }
    }
}

fn module() -> Module {
    packages::module(|| Toy)
}

fn target() -> FakeTarget {
    FakeTarget::new().answer(&["toy", "list"], 0, "greet\n", "")
}

#[test]
fn what_the_manager_cannot_do_is_refused_and_not_taken_for_done() {
    let problem = target().call(&module(), "pkg_purge", json!({"package": "greet"})).unwrap_err();
    assert_eq!(problem.code, "NOT_SUPPORTED", "{problem:?}");
}

#[test]
fn an_exit_code_of_the_managers_own_is_no_failure_and_its_meaning_is_told() {
    let output = testkit::output(REBOOT, "", "");
    let target = target()
        .outcome(Ok(confirm::Applied { outputs: vec![output], dry_run: false }))
        .answer_after(&["toy", "list"], 0, "", "");
    let plans = target.plans();
    let (data, reply) = target.call(&module(), "pkg_remove", json!({"package": "greet"})).unwrap();
    assert_eq!(data["removed"][0]["name"], "greet", "{data}");
    assert_eq!(reply.notes, ["restart the machine"]);
    let removal = Step::run(REMOVE.with(["greet"]).as_root()).success(&[0, REBOOT]).uninterruptible();
    assert_eq!(plans.take().remove(0).steps(), [removal]);
}
