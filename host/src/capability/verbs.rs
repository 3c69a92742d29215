//! The host's own commands on granted paths, where they take another account's rights.
//!
//! They are patterns like those of any grant, made from the templates of `verbs.yaml` for each granted path: so they
//! can be shown and turned into sudoers lines as the grants are, and the host runs nothing that none of them allows.

use std::sync::LazyLock;

use serde::Deserialize;

use super::hole::HoleType;
use super::path::Glob;
use super::pattern::{Item, Part, Pattern, PatternError};
use super::request::PathRequest;
use crate::target::Privilege;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Templates {
    /// To see where a path leads and who could change that.
    look: Vec<String>,
    /// To read what is there.
    read: Vec<String>,
}

/// Templates that can't be read would be none, and then nothing is allowed.
static TEMPLATES: LazyLock<Templates> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("verbs.yaml")).unwrap_or_default());

/// What the host may run to read the granted files; nothing where it opens them as the caller. An error where the path
/// makes a pattern too long.
pub fn verbs_for(request: &PathRequest) -> Result<Vec<Pattern>, PatternError> {
    if request.privilege == Privilege::Caller {
        return Ok(Vec::new());
    }
    let templates = TEMPLATES.look.iter().chain(&TEMPLATES.read);
    templates.map(|template| instantiate(template, &request.glob)).collect()
}

/// What the host may run to see where the paths in a command lead, before it runs the command with these rights. A
/// `<path>` without a glob may lead anywhere.
pub fn verbs_for_command(pattern: &Pattern, privilege: &Privilege) -> Result<Vec<Pattern>, PatternError> {
    let mut globs = Vec::new();
    if *privilege != Privilege::Caller {
        collect_globs(pattern.items(), &mut globs);
    }
    let of_glob = |glob| TEMPLATES.look.iter().map(move |template| instantiate(template, glob));
    globs.into_iter().flat_map(of_glob).collect()
}

/// The globs of all path holes, each once.
fn collect_globs<'a>(items: &'a [Item], globs: &mut Vec<&'a str>) {
    for item in items {
        match item {
            Item::Token(token) => {
                for part in token.parts() {
                    let Part::Hole(HoleType::Path(glob)) = part else { continue };
                    let glob = glob.as_ref().map_or("/**", Glob::text);
                    if !globs.contains(&glob) {
                        globs.push(glob);
                    }
                }
            }
            Item::Optional(items) => collect_globs(items, globs),
            Item::Alternatives(ways) => ways.iter().for_each(|way| collect_globs(way, globs)),
            Item::Repeat(item) => collect_globs(std::slice::from_ref(item), globs),
        }
    }
}

fn instantiate(template: &str, glob: &str) -> Result<Pattern, PatternError> {
    // Beside the glob itself, everything below `/x/**` being granted lets `/x` be listed: Glob::covers_listing.
    let listed = match glob.strip_suffix("/**") {
        None => vec![glob],
        Some("") => vec![glob, "/"],
        Some(directory) => vec![glob, directory],
    };
    let text = template
        .replace("<path:ABOVE>", &holes(&above(glob)))
        .replace("<path:LISTED>", &holes(&listed))
        .replace("<path:GLOB>", &holes(&[glob]));
    Pattern::parse(&text)
}

fn holes(globs: &[&str]) -> String {
    globs.iter().map(|glob| format!("<path:{glob}>")).collect::<Vec<_>>().join("|")
}

/// Globs of the directories above what a glob covers, from the root on.
fn above(glob: &str) -> Vec<&str> {
    let slashes = glob.match_indices('/').skip(1).map(|(at, _)| &glob[..at]);
    std::iter::once("/").chain(slashes).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::capability::Place;

    const STAT: [&str; 2] = ["--format=%f:%u:%g:%s:%Y:%h:%D:%i:%U:%G:%n", "--"];
    const LS: [&str; 5] =
        ["--almost-all", "--format=single-column", "--sort=none", "--quoting-style=c", "--"];

    fn verbs(glob: &str) -> Vec<Pattern> {
        let (glob, place) = (glob.to_owned(), Place::Target);
        let request =
            PathRequest { glob, write: false, privilege: Privilege::Root, place, reason: String::new() };
        verbs_for(&request).unwrap()
    }

    fn allowed(verbs: &[Pattern], program: &str, args: &[&str]) -> bool {
        let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        verbs.iter().any(|verb| verb.allows(program, &args, &[], false).is_some())
    }

    fn may_stat(verbs: &[Pattern], path: &str) -> bool {
        allowed(verbs, "stat", &[&STAT[..], &[path]].concat())
    }

    fn may_list(verbs: &[Pattern], path: &str) -> bool {
        allowed(verbs, "ls", &[&LS[..], &[path]].concat())
    }

    #[test]
    fn the_templates_can_be_read_and_each_takes_the_path() {
        let templates: Templates = serde_yaml::from_str(include_str!("verbs.yaml")).unwrap();
        assert_eq!((templates.look.len(), templates.read.len()), (2, 2));
        for pattern in verbs("/var/log/**") {
            assert!(pattern.text().contains("<path:/var/log/**>"), "{pattern}");
            assert!(
                !["ABOVE", "GLOB", "LISTED"].iter().any(|word| pattern.text().contains(word)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_is_granted_and_what_is_above_it_may_be_looked_at_and_nothing_else() {
        for (glob, yes, no) in [
            (
                "/var/log/**",
                &["/", "/var", "/var/log", "/var/log/a", "/var/log/a/b c"][..],
                &["/etc", "/var/lib", "/var/log/../lib", "/var/log/.ssh/id_rsa", "-L", ""][..],
            ),
            ("/etc/shadow", &["/", "/etc", "/etc/shadow"], &["/etc/gshadow", "/etc/passwd"]),
            (
                "/home/*/.profile",
                &["/home", "/home/ada", "/home/ada/.profile"],
                &["/home/ada/.bashrc", "/home/a/b/.profile"],
            ),
            ("/srv/**/conf", &["/srv", "/srv/a", "/srv/a/b/conf"], &["/opt"]),
            ("/**", &["/", "/a", "/a/b"], &["/etc/shadow"]),
        ] {
            let verbs = verbs(glob);
            for path in yes {
                assert!(may_stat(&verbs, path), "{glob} {path}");
            }
            for path in no {
                assert!(!may_stat(&verbs, path), "{glob} {path}");
            }
        }
    }

    #[test]
    fn a_directory_above_is_looked_at_but_neither_read_nor_listed() {
        let verbs = verbs("/var/log/app/*");
        let dd = |path: &str| {
            let path = format!("if={path}");
            let flags = "iflag=fullblock,nofollow,nonblock,skip_bytes,count_bytes";
            let rest = ["bs=65536", "skip=0", "count=10", "status=none"];
            allowed(&verbs, "dd", &[&[path.as_str(), flags], &rest[..]].concat())
        };
        assert!(dd("/var/log/app/x") && may_list(&verbs, "/var/log/app/x"));
        for path in ["/", "/var", "/var/log", "/var/log/app", "/var/log/other/x"] {
            assert!(!dd(path) && !may_list(&verbs, path), "{path}");
        }
    }

    #[test]
    fn what_may_be_listed_is_what_the_glob_says() {
        for (glob, directory) in
            [("/var/log/**", "/var/log"), ("/**", "/"), ("/a/**/b/**", "/a/x/b"), ("/etc/apt", "/etc/apt")]
        {
            assert!(Glob::parse(glob).unwrap().covers_listing(directory), "{glob}");
            assert!(may_list(&verbs(glob), directory), "{glob} {directory}");
        }
    }

    #[test]
    fn as_the_caller_no_command_is_needed() {
        let (glob, place, privilege) = ("/etc/passwd".to_owned(), Place::Target, Privilege::Caller);
        let request = PathRequest { glob, write: false, privilege, place, reason: String::new() };
        assert!(verbs_for(&request).unwrap().is_empty());
        let pattern = Pattern::parse("cat -- <path>").unwrap();
        assert!(verbs_for_command(&pattern, &Privilege::Caller).unwrap().is_empty());
    }

    #[test]
    fn the_paths_in_a_command_may_be_looked_at_wherever_they_stand_in_it() {
        let pattern = Pattern::parse(
            "x [--a=<path:/etc/a>] (<path:/srv/*>|-b <path:/srv/*>)... -- <unit> <path:/run/c>...",
        );
        let verbs = verbs_for_command(&pattern.unwrap(), &Privilege::Root).unwrap();
        // Two verbs for each of three globs.
        assert_eq!(verbs.len(), 6);
        for path in ["/etc/a", "/srv/x", "/run/c", "/run"] {
            assert!(may_stat(&verbs, path), "{path}");
        }
        assert!(!may_stat(&verbs, "/root/x") && !may_list(&verbs, "/srv/x"));
        let anywhere = Pattern::parse("cat -- <path>").unwrap();
        let anywhere = verbs_for_command(&anywhere, &Privilege::RootIfAvailable).unwrap();
        assert!(may_stat(&anywhere, "/root/x") && !may_stat(&anywhere, "/etc/shadow"));
    }

    #[test]
    fn a_path_that_makes_a_pattern_too_long_is_an_error() {
        let (glob, place, privilege) =
            (format!("/{}", "abc/".repeat(200) + "d"), Place::Target, Privilege::Root);
        let request = PathRequest { glob, write: false, privilege, place, reason: String::new() };
        assert!(verbs_for(&request).unwrap_err().to_string().contains("at most"));
    }

    proptest! {
        #[test]
        fn every_path_that_a_glob_admits_may_be_looked_at_with_all_that_is_above(
            names in prop::collection::vec("[a-z.][a-z0-9 .:+ü-]{0,6}[a-z]", 1..6), star in 0usize..6,
        ) {
            let path = format!("/{}", names.join("/"));
            let mut glob = names.clone();
            let last = glob.len() - 1;
            glob[star.min(last)] = if star > last { "**".into() } else { "*".into() };
            let glob = format!("/{}", glob.join("/"));
            prop_assume!(Glob::parse(&glob).unwrap().admits(&path));
            let verbs = verbs(&glob);
            prop_assert!(may_stat(&verbs, &path), "{} {}", glob, path);
            for directory in above(&path) {
                prop_assert!(may_stat(&verbs, directory), "{} {}", glob, directory);
            }
        }
    }
}
