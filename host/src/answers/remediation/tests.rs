use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use super::*;

const FAMILIES: [&str; 4] = ["debian", "rhel", "arch", ""];

const CATEGORIES: [Category; 12] = [
    Category::Privilege,
    Category::NotFound,
    Category::Dependency,
    Category::Resource,
    Category::Lock,
    Category::Network,
    Category::Timeout,
    Category::Validation,
    Category::State,
    Category::Denied,
    Category::Internal,
    Category::Other,
];

fn table() -> Table {
    serde_yaml::from_str(include_str!("../remediation.yaml")).unwrap()
}

fn known() -> RemediationContext<'static> {
    RemediationContext { family: "debian", host: "web1", module: Some("services"), user: Some("alice") }
}

fn steps(code: &str, category: Category, context: &RemediationContext) -> Vec<String> {
    attach(Problem::new(code, category, "m"), context, |_| Vec::new()).remediation
}

/// The source of all crates of the host, without data files.
fn source() -> String {
    let beside = std::fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap();
    let crates = beside.map(|entry| entry.unwrap().path().join("src")).filter(|path| path.is_dir());
    let crates: Vec<String> = crates.map(|path| path.to_string_lossy().into_owned()).collect();
    assert!(crates.len() > 10, "{crates:?}");
    let crates: Vec<&str> = crates.iter().map(String::as_str).chain(["src"]).collect();
    source_in(&crates)
}

fn source_in(directories: &[&str]) -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut directories: Vec<_> = directories.iter().map(|directory| own.join(directory)).collect();
    let mut text = String::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    text
}

#[test]
fn every_list_has_a_default_and_every_step_its_holes_filled() {
    let table = table();
    for (name, steps) in table
        .codes
        .iter()
        .map(|(code, steps)| (code.clone(), steps))
        .chain(table.categories.iter().map(|(category, steps)| (format!("{category:?}"), steps)))
    {
        for family in FAMILIES {
            let steps = steps.of(family);
            assert!(!steps.is_empty(), "{name} for {family}");
            for step in steps {
                assert!(known().fill(step).is_some(), "{name}: {step}");
                assert!(step.len() > 20 && !step.ends_with('.'), "{name}: {step}");
            }
            let unknown = RemediationContext { family, host: "web1", ..RemediationContext::default() };
            assert!(steps.iter().any(|step| unknown.fill(step).is_some()), "{name} needs to know too much");
        }
    }
}

#[test]
fn whatever_goes_wrong_there_is_something_to_do() {
    for category in CATEGORIES {
        for family in FAMILIES {
            let context = RemediationContext { family, host: "web1", ..RemediationContext::default() };
            assert!(!steps("NO_SUCH_CODE", category, &context).is_empty(), "{category:?} for {family:?}");
        }
    }
}

#[test]
fn every_code_that_the_host_makes_has_steps_and_no_other_code_has() {
    let source = source();
    let made = Regex::new(r#"Problem::new\(\s*"([A-Z_]+)",\s*(?:\w+::)*Category::(\w+)"#).unwrap();
    let mut codes = BTreeSet::new();
    for found in made.captures_iter(&source) {
        let category = CATEGORIES.into_iter().find(|category| format!("{category:?}") == found[2]).unwrap();
        for family in FAMILIES {
            let context = RemediationContext { family, host: "web1", ..RemediationContext::default() };
            assert!(!steps(&found[1], category, &context).is_empty(), "{} for {family}", &found[1]);
        }
        codes.insert(found[1].to_owned());
    }
    assert!(codes.len() > 50, "{codes:?}");
    // What any package manager's module says is the sdk's, and what to do context it depends on the distribution.
    let packages = ["../sdk/src/packages", "../modules/packages-apt/src", "../modules/packages-dnf/src"];
    let source = source + &source_in(&packages);
    for code in table().codes.keys() {
        assert!(
            source.contains(&format!("\"{code}\"")),
            "{code} is nothing that the host or a package tool says"
        );
    }
}

#[test]
fn steps_are_those_of_the_distribution() {
    let of = |family| {
        steps("COMMAND_FAILED", Category::Other, &RemediationContext { family, ..known() }).join("\n")
    };
    assert!(of("debian").contains("dpkg --configure -a") && !of("debian").contains("dnf"));
    assert!(of("rhel").contains("dnf clean metadata") && !of("rhel").contains("dpkg"));
    assert!(!of("arch").contains("dnf") && !of("arch").contains("dpkg"));
    // The same holds for the steps of a category.
    let of = |family| steps("X", Category::Dependency, &RemediationContext { family, ..known() }).join("\n");
    assert!(of("debian").contains("apt-get") && of("rhel").contains("dnf check"));
}

#[test]
fn a_lack_of_rights_names_the_modules_own_fragment_for_the_account() {
    let steps = steps("PRIVILEGE_REQUIRED", Category::Privilege, &known()).join("\n");
    assert!(steps.contains("`linux-sysadmin modules sudoers services --account alice`"), "{steps}");
}

#[test]
fn a_name_that_a_shell_would_read_otherwise_is_in_no_command_line() {
    for user in ["$(id)", "a b", "-x", "a;b", "", "a'b"] {
        let context = RemediationContext { user: Some(user), ..known() };
        assert_eq!(context.fill("modules sudoers --account {user}"), None, "{user}");
    }
}

#[test]
fn what_a_problem_says_itself_stays() {
    let problem = Problem::new("PRIVILEGE_REQUIRED", Category::Privilege, "m").remedy("do this");
    let calls = |_: &str| vec!["Call that".to_owned()];
    assert_eq!(attach(problem, &known(), calls).remediation, ["do this"]);
}

#[test]
fn the_tools_that_help_come_first_and_no_command_is_to_be_typed_then() {
    let problem = || Problem::new("OUT_OF_SPACE", Category::Resource, "m");
    let calls = |code: &str| vec![format!("See what fills it, after {code}: some_tool")];
    let steps = attach(problem(), &known(), calls).remediation;
    assert_eq!(steps, ["See what fills it, after OUT_OF_SPACE: some_tool"]);
    assert!(attach(problem(), &known(), |_| Vec::new()).remediation[0].contains("`df -h`"));
    // The program's own commands stay.
    let problem = Problem::new("PERMISSION_DENIED", Category::Privilege, "m");
    let steps = attach(problem, &known(), calls).remediation;
    assert_eq!(steps.len(), 2, "{steps:?}");
    assert!(steps[1].contains("`linux-sysadmin modules sudoers services --account alice`"), "{steps:?}");
}

#[test]
fn a_hole_is_filled_once_and_what_fills_it_has_none() {
    let context = RemediationContext { host: "{user}", ..known() };
    assert_eq!(context.fill("on {host} as {user}").as_deref(), Some("on {user} as alice"));
    for step in ["{unknown}", "open {", "{}"] {
        assert_eq!(context.fill(step), None, "{step}");
    }
    assert_eq!(RemediationContext::default().fill("for {module}"), None);
}
