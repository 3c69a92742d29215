//! Looks at this machine's files with another account's rights, without a command. A server that runs as root takes the rights
//! for one thread, which then ends. sudo would take ten milliseconds for that, and need not be installed.
//!
//! Only the effective ids change. The thread reaches what the account reaches, and the account can't signal or trace it,
//! because its real and saved ids stay root's.

use std::io;
use std::sync::LazyLock;
use std::thread::Builder;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::process::{Gid, Uid};
use rustix::thread::{capabilities, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use tokio::sync::oneshot;

use super::entry::{NOBODY, Trusted};
use host_base::passwd;
use host_base::problem::{Category, Problem};

/// Whether this process can take another account's rights for a thread, and leaves root's behind by that.
static IS_POSSIBLE: LazyLock<bool> = LazyLock::new(|| {
    // Kernels before 5.6 lack this call. A file is then opened by way of /proc/self, which isn't the account's.
    let opens = openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let nobody = Account { name: NOBODY.to_owned(), uid: 65_534, gid: 65_534, groups: Vec::new() };
    let takes = Builder::new().spawn(move || nobody.take_rights());
    opens.is_ok() && takes.is_ok_and(|thread| matches!(thread.join(), Ok(Ok(()))))
});

/// An account of this machine other than root.
#[derive(Debug, PartialEq)]
pub(super) struct Account {
    name: String,
    uid: u32,
    gid: u32,
    /// The further groups that list it as a member.
    groups: Vec<u32>,
}

impl Account {
    /// The account of this name. None where this machine's own tables don't have it, or where its rights can't be taken
    /// here.
    pub(super) fn named(name: &str) -> Option<Self> {
        let account = passwd::read().ok()?.into_iter().find(|entry| entry.name == name)?;
        let group = passwd::text_or_empty("/etc/group".as_ref()).ok()?;
        let groups = passwd::group_ids_of(&group, name);
        let is_other = account.uid != 0 && *IS_POSSIBLE;
        is_other.then_some(Self { name: account.name, uid: account.uid, gid: account.gid, groups })
    }

    /// Looks with the account's rights over files, and with no others. `count` is the number of answers.
    pub(super) async fn look<T: Send + 'static>(
        self,
        count: usize,
        look: impl FnOnce(&Trusted) -> Vec<Result<T, Problem>> + Send + 'static,
    ) -> Vec<Result<T, Problem>> {
        let (answer, answers) = oneshot::channel();
        let looking = Builder::new().spawn(move || {
            let looked = self.take_rights().map(|()| look(&Trusted::Owner(self.name)));
            // Nobody waits any more where the call has ended.
            let _ = answer.send(looked);
        });
        let looked = match looking {
            Ok(_) => answers.await.unwrap_or_else(|_| Err(io::Error::other("the thread has panicked"))),
            Err(error) => Err(error),
        };
        looked.unwrap_or_else(|error| {
            let problem = Problem::new("INTERNAL_ERROR", Category::Internal, error.to_string());
            (0..count).map(|_| Err(problem.clone())).collect()
        })
    }

    /// Takes the account's rights for the thread that calls this, which must end after its work.
    fn take_rights(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        set_thread_groups(&groups)?;
        set_thread_res_gid(None, Gid::from_raw(self.gid), None)?;
        // The kernel takes root's capabilities away by this, unless the process was started with that switched off.
        set_thread_res_uid(None, Uid::from_raw(self.uid), None)?;
        match capabilities(None)?.effective.is_empty() {
            true => Ok(()),
            false => Err(io::Error::other("root's rights can't be left behind")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[tokio::test]
    async fn root_reaches_as_another_account_what_that_account_reaches_and_is_itself_afterwards() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: this takes root's rights");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let [own, roots, groups] = ["own", "roots", "groups"].map(|name| directory.path().join(name));
        for (path, uid, gid, mode) in
            [(&own, 1234, 0, 0o400), (&roots, 0, 0, 0o600), (&groups, 0, 4321, 0o640)]
        {
            fs::write(path, "text").unwrap();
            chown(path, Some(uid), Some(gid)).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let read = async |groups_of: Vec<u32>| {
            let account = Account { name: "ada".to_owned(), uid: 1234, gid: 1234, groups: groups_of };
            let paths = [own.clone(), roots.clone(), groups.clone()];
            let look = move |trusted: &Trusted| {
                assert_eq!(*trusted, Trusted::Owner("ada".to_owned()));
                paths.iter().map(|path| fs::read(path).map_err(|error| Problem::io("it", &error))).collect()
            };
            account.look(3, look).await.iter().map(Result::is_ok).collect::<Vec<_>>()
        };
        assert_eq!(read(vec![]).await, [true, false, false]);
        assert_eq!(read(vec![4321]).await, [true, false, true]);
        assert!(fs::read(&roots).is_ok(), "no other thread has lost its rights");
    }

    #[tokio::test]
    async fn a_thread_that_panics_or_gets_no_rights_answers_each_question_with_a_problem() {
        let account = |uid| Account { name: "ada".to_owned(), uid, gid: 1, groups: Vec::new() };
        let answers =
            account(u32::MAX - 1).look(2, |_: &Trusted| -> Vec<Result<(), Problem>> { panic!("now") });
        let answers = answers.await;
        assert_eq!(answers.len(), 2);
        assert!(
            answers
                .iter()
                .all(|answer| answer.as_ref().is_err_and(|problem| problem.code == "INTERNAL_ERROR"))
        );
        // With root's own number the thread keeps root's capabilities, and may not look.
        if rustix::process::geteuid().is_root() {
            let account = account(0);
            let is_refused = std::thread::spawn(move || account.take_rights()).join().unwrap().is_err();
            assert!(is_refused, "root has all capabilities");
        }
    }

    #[test]
    fn root_and_accounts_that_are_not_in_the_table_are_reached_by_commands() {
        assert_eq!(Account::named("root"), None);
        assert_eq!(Account::named("no-such-account"), None);
    }
}
