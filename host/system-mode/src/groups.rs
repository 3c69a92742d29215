//! The groups that the machine's name service (NSS) reports, among them an account's primary one.

use super::{SystemError, programs};
use host_target::Target;

/// Returns the numbers of an account's groups, or of this process's groups where no account is given.
pub async fn of(target: &Target, account: Option<&str>) -> Result<Vec<u32>, SystemError> {
    let args: &[&str] = match account {
        Some(account) => &["-G", "--", account],
        None => &["-G"],
    };
    let output = programs::must(target, "id", args).await?;
    let said = String::from_utf8_lossy(&output.stdout);
    numbers(&said).ok_or_else(|| SystemError::Refused(format!("`id -G` said {said:?} instead of numbers")))
}

/// Returns those of these groups, given by name or number, that exist, with their numbers.
pub async fn named(target: &Target, names: &[&str]) -> Result<Vec<(String, u32)>, SystemError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let args = [&["group"], names].concat();
    let output = programs::run(target, "getent", &args, programs::SHORT).await?;
    // Exit code 2 means that not all of them exist.
    let output = match output.exit_code {
        2 => output,
        _ => programs::succeeded("getent", &args, output)?,
    };
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses numbers. An account is in one group at least.
fn numbers(said: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = said.split_whitespace().map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// Parses lines of group(5).
fn parse(text: &str) -> Vec<(String, u32)> {
    let group = |line: &str| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        Some((name.to_owned(), number.parse().ok()?))
    };
    text.lines().filter_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_target::Overrides;

    #[test]
    fn what_is_no_list_of_numbers_is_no_answer() {
        // GNU coreutils 9.1: `id -G alice`.
        assert_eq!(numbers("4343 4344\n"), Some(vec![4343, 4344]));
        for other in ["", "\n", "4343 docker\n", "-1\n", "4294967296\n"] {
            assert_eq!(numbers(other), None, "{other:?}");
        }
    }

    #[test]
    fn a_groups_number_is_read_whatever_its_members() {
        // getent of glibc 2.36: `getent group root disk exm`.
        let text = "root:x:0:\ndisk:x:6:\nexm:x:4344:alice,bob\n";
        let groups = [("root", 0), ("disk", 6), ("exm", 4344)].map(|(name, gid)| (name.to_owned(), gid));
        assert_eq!(parse(text), groups);
        assert_eq!(parse("short:x\nbroken:x:ten:\n"), []);
    }

    #[tokio::test]
    async fn this_machine_knows_roots_group() {
        let target = Target::local(Overrides::default());
        assert!(of(&target, Some("root")).await.unwrap().contains(&0));
        assert!(!of(&target, None).await.unwrap().is_empty());
        assert!(of(&target, Some("lsa-nobody-at-all")).await.is_err());
        let found = named(&target, &["root", "lsa-no-such-group"]).await.unwrap();
        assert_eq!(found, [("root".to_owned(), 0)]);
        assert_eq!(named(&target, &[]).await.unwrap(), []);
    }
}
