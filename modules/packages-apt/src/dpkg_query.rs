//! dpkg's own database, by dpkg-query(1).

use linux_sysadmin_sdk::packages::{Installed, State};
use linux_sysadmin_sdk::prelude::*;

use crate::commands::INSTALLED;

pub(crate) fn installed(cx: &Context) -> Result<Vec<Installed>> {
    read(cx.run(INSTALLED.command()))
}

/// Reads the output of [`INSTALLED`], for a function that runs it together with other commands.
pub(crate) fn read(output: Result<Output>) -> Result<Vec<Installed>> {
    let said = output?.success("dpkg-query")?;
    parse(&said.text())
}

/// Reads the output of [`INSTALLED_OF`](crate::commands::INSTALLED_OF), which prints the others where there is no package of one name.
pub(crate) fn read_of(output: Result<Output>) -> Result<Vec<Installed>> {
    let said = output?;
    if said.exit_code != 1 {
        return read(Ok(said));
    }
    parse(&said.text())
}

fn parse(text: &str) -> Result<Vec<Installed>> {
    text.lines().filter_map(|line| package(line).transpose()).collect()
}

/// Parses a line. `None` for a package of which nothing is left.
fn package(line: &str) -> Result<Option<Installed>> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().ok_or_else(|| Problem::unexpected("dpkg-query --show", line));
    let (name, version, arch, status) = (next()?, next()?, next()?, next()?);
    let (essential, protected) = (next()?, next()?);
    let [wanted, state] = [0, 1].map(|at| status.chars().nth(at).unwrap_or_default());
    // A third letter R means that the package has to be installed again.
    let is_bad = status.chars().nth(2) == Some('R');
    let state = match state {
        'n' => return Ok(None),
        _ if is_bad => State::Broken("reinst-required".to_owned()),
        'i' => State::Installed,
        'c' => State::ConfigFiles,
        'H' => State::Broken("half-installed".to_owned()),
        'U' => State::Broken("unpacked".to_owned()),
        'F' => State::Broken("half-configured".to_owned()),
        'W' => State::Broken("triggers-awaited".to_owned()),
        't' => State::Broken("triggers-pending".to_owned()),
        _ => return Err(Problem::unexpected("dpkg-query --show", line)),
    };
    Ok(Some(Installed {
        name: name.to_owned(),
        version: version.to_owned(),
        arch: arch.to_owned(),
        state,
        held: wanted == 'h',
        essential: essential == "yes" || protected == "yes",
    }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The abbreviations come from dpkg-query(1), `-f`, `db:Status-Abbrev`; the lines come from dpkg 1.21.22.
    #[test]
    fn each_state_is_told_and_what_is_not_installed_is_left_out() {
        let text = "bash\t5.2.15-2+b13\tamd64\tii \tyes\tno\n\
            lab-hello\t1.0\tall\thi \tno\tno\n\
            lab-conf\t1.0\tall\trc \tno\tno\n\
            lab-broken\t1.0\tall\tiF \tno\tno\n\
            lab-slow\t1.0\tall\tiHR\tno\tno\n\
            awk\t\t\tun \tno\tno\n\
            init\t1\tamd64\tii \tno\tyes\n";
        let found = parse(text).unwrap();
        let shown: Vec<_> = found
            .iter()
            .map(|package| (package.name.as_str(), &package.state, package.held, package.essential))
            .collect();
        let broken = |state: &str| State::Broken(state.to_owned());
        assert_eq!(
            shown,
            [
                ("bash", &State::Installed, false, true),
                ("lab-hello", &State::Installed, true, false),
                ("lab-conf", &State::ConfigFiles, false, false),
                ("lab-broken", &broken("half-configured"), false, false),
                ("lab-slow", &broken("reinst-required"), false, false),
                ("init", &State::Installed, false, true),
            ]
        );
        assert!(parse("").unwrap().is_empty());
        for bad in ["bash", "bash\t5\tamd64\tii ", "bash\t5\tamd64\tiX \tno\tno", "\u{fffd}\n"] {
            assert_eq!(parse(bad).unwrap_err().code, "UNEXPECTED_OUTPUT", "{bad:?}");
        }
    }
}
