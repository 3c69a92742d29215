//! Finds what a former account has left behind, since a new one of that name or number gets it: jobs and units that name the
//! account, and files that belong to nobody.

use host_base::problem::Problem;
use host_base::{Command, Output, Privilege};
use host_policy::NewAccount;

use super::{PrivilegeCheck, SHOWN, command};
use host_text::visible::excerpt;

/// Files and directories where root's jobs, units and logins name accounts.
const NAMING: [&str; 12] = [
    "/etc/crontab",
    "/etc/anacrontab",
    "/etc/cron.d",
    "/etc/cron.hourly",
    "/etc/cron.daily",
    "/etc/cron.weekly",
    "/etc/cron.monthly",
    "/etc/systemd/system",
    "/etc/ssh/sshd_config",
    "/etc/ssh/sshd_config.d",
    "/etc/logrotate.d",
    "/etc/sudoers.d",
];

/// The directories of programs and settings that no package brings.
const OWN: [&str; 3] = ["/etc", "/opt", "/usr/local"];

impl PrivilegeCheck<'_> {
    /// The reasons why a new account or group gets something that is there already. What the caller's account can't read
    /// isn't looked at.
    pub async fn leftovers(&self, new: &NewAccount) -> Vec<String> {
        let NewAccount { name, is_group, .. } = new;
        // The name is part of a pattern. useradd(8) takes no other characters, unless it is told to.
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-$".contains(&byte)) {
            return vec![format!("makes {}, which isn't looked for on the target", excerpt(name, SHOWN))];
        }
        let mut answers = self.target.run_all(&[named(name), nobodys(*is_group)]).await.into_iter();
        let (naming, nobodys) = (first_path(answers.next()), first_path(answers.next()));
        let unknown = || format!("makes {name}, and the target doesn't show what is there for it already");
        let shown = |path: String| excerpt(&path, SHOWN);
        let naming =
            naming.map(|path| path.map(|path| format!("makes {name}, which {} names already", shown(path))));
        let nobodys = nobodys.map(|path| {
            path.map(|path| {
                format!("makes {name}, and {} belongs to nobody, and may become its own", shown(path))
            })
        });
        [naming, nobodys].into_iter().filter_map(|why| why.unwrap_or_else(|()| Some(unknown()))).collect()
    }
}

/// The first path that a command names, if it names one. An error where the target gives no answer.
fn first_path(answer: Option<Result<Output, Problem>>) -> Result<Option<String>, ()> {
    match answer {
        Some(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stdout);
            Ok(said.lines().find(|line| line.starts_with('/')).map(str::to_owned))
        }
        Some(Err(problem)) if problem.code == "PROGRAM_NOT_FOUND" => Ok(None),
        _ => Err(()),
    }
}

/// Lists the files in which a job, a unit, a login or a rotation is an account's, or that name something in its home.
fn named(name: &str) -> Command {
    // Of the characters of a name, the dot and the dollar mean more than themselves.
    let name = name.replace('.', "[.]").replace('$', "[$]");
    let in_a_list = format!("([^#]*[[:blank:],:])?{name}([[:blank:],@]|$)");
    let patterns = [
        format!("^(User|Group|SupplementaryGroups)=({in_a_list})"),
        format!("/home/{name}(/|[^A-Za-z0-9_.-]|$)"),
        // The account of a line in a system crontab.
        format!(
            "^(([0-9*][-0-9*,/]*[[:blank:]]+){{3}}[^[:blank:]]+[[:blank:]]+[^[:blank:]]+|@[a-z]+)[[:blank:]]+{name}[[:blank:]]"
        ),
        format!("^[[:blank:]]*(Match|AllowUsers|AllowGroups)[[:blank:]]{in_a_list}"),
        format!("^[[:blank:]]*(su|create)[[:blank:]]{in_a_list}"),
    ];
    let patterns = patterns.iter().flat_map(|pattern| ["-e", pattern]);
    let options = ["-r", "-l", "-E", "-s", "-m", "1"].into_iter().chain(patterns).chain(["--"]);
    command("grep", &options.chain(NAMING).collect::<Vec<_>>(), Privilege::Caller)
}

/// Finds a file whose owner or group has no name.
fn nobodys(is_group: bool) -> Command {
    let test: &[&str] = if is_group { &["-nogroup"] } else { &["(", "-nouser", "-o", "-nogroup", ")"] };
    command("find", &[&OWN[..], &["-xdev"], test, &["-print", "-quit"]].concat(), Privilege::Caller)
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use host_target::{Facts, Overrides, Target};

    use super::*;

    #[tokio::test]
    async fn a_name_that_would_be_a_pattern_asks() {
        let (target, facts) = (Target::local(Overrides::default()), Facts::default());
        let check = PrivilegeCheck::new(&target, &facts);
        for name in ["a[", "a|b", "a\\<", "(", "a*"] {
            let new =
                NewAccount { name: name.to_owned(), number: None, primary_group: None, is_group: false };
            assert!(!check.leftovers(&new).await.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_account_is_named_by_what_is_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        for (text, expected) in [
            ("[Service]\nUser=app\n", true),
            ("[Service]\nSupplementaryGroups=adm app\n", true),
            ("[Service]\nExecStartPre=+/home/app/pre.sh\n", true),
            ("* * * * * root [ -x /home/app/b.sh ] && /home/app/b.sh\n", true),
            ("*/5 1-3 * * * app /usr/bin/true\n", true),
            ("@daily app /usr/bin/true\n", true),
            ("Match User root,app\n", true),
            ("AllowUsers app@10.0.0.1\n", true),
            ("/srv/x/*.log {\n  su app adm\n}\n", true),
            ("/srv/x/*.log {\n  create 0640 www-data app\n}\n", true),
            ("[Unit]\nDescription=The app\n[Service]\nUser=app-x\nExecStart=/srv/app/run\n", false),
            ("# app\n* * * * * root /usr/bin/app\n", false),
            ("0 3 * * * root /usr/local/bin/run app\n", false),
            ("Port 22 # app\n", false),
            ("[Unit]\nDescription=The app of app x\nExecStart=/usr/bin/x app y\n", false),
        ] {
            std::fs::write(&file, text).unwrap();
            let command = named("app");
            let own = command.args.iter().take_while(|word| *word != "--");
            let found = Process::new("grep").args(own).arg(&file).output().unwrap();
            assert_eq!(!found.stdout.is_empty(), expected, "{text}");
        }
    }
}
