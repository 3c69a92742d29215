//! The imports and exports of a component, read from its bytes before any of it is compiled or run.

use wasmparser::{Parser, Payload};

use super::CONTRACT;

/// The WASI packages that are linked and give no access. Sockets and http are in no linker.
const WASI: [&str; 5] = ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/"];

/// The interfaces of the contract that every module may import. `system-module` has more.
const TOOL_MODULE: [&str; 10] = [
    "confirm",
    "distro-context",
    "doc-emit",
    "exec-command",
    "knowledge",
    "progress",
    "redaction",
    "target-files",
    "tool-calls",
    "types",
];

/// The interfaces that only the host's own modules may import besides.
const SYSTEM_MODULE: [&str; 3] = ["session", "target-control", "jobs"];

/// A version of the contract that the host speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contract {
    /// The version that `wit/0.1` has.
    V0_1,
    /// [`CONTRACT`].
    Current,
}

impl Contract {
    /// The version that a name such as `sysadmin:module/tools@0.1.0` belongs to. None where the name is of another
    /// package, and an error where the version is another one.
    fn of(name: &str) -> Option<(&str, Result<Self, SurfaceError>)> {
        let (package, current) = CONTRACT.split_once('@').unwrap_or_default();
        let (interface, version) = name.strip_prefix(package)?.strip_prefix('/')?.split_once('@')?;
        Some((
            interface,
            match version {
                "0.1.0" => Ok(Self::V0_1),
                version if version == current => Ok(Self::Current),
                other => Err(SurfaceError::Contract(format!("{package}@{other}"))),
            },
        ))
    }
}

/// The world of the contract that a module may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum World {
    /// The world of every module.
    Tool,
    /// The world of the host's own modules.
    System,
}

/// The names at the outermost level of a component.
#[derive(Debug, Default)]
pub(super) struct Surface {
    pub(super) imports: Vec<String>,
    exports: Vec<String>,
}

/// The reason why a component can't be a module.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurfaceError {
    /// The bytes are no component.
    #[error("it is not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// The component has another version of the contract.
    #[error("it speaks {0}, and this host speaks {CONTRACT} and its version 0.1.0")]
    Contract(String),
    /// The component mixes versions of the contract.
    #[error("it has interfaces of several versions of the contract")]
    Mixed,
    /// The component imports an interface that no module may have.
    #[error("it imports {0}, which no module may have")]
    Import(String),
    /// The component imports an interface that only the host's own modules may have.
    #[error("it imports {0}, which only modules that come with the host may have")]
    SystemImport(String),
    /// The component lacks an interface that every module must export.
    #[error("it doesn't export {0}, which every module must")]
    Export(String),
}

impl Surface {
    /// Reads the imports and exports. It runs no code of the component.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, SurfaceError> {
        let wrong = |error: &dyn std::fmt::Display| SurfaceError::NotAComponent(error.to_string());
        if !Parser::is_component(bytes) {
            return Err(SurfaceError::NotAComponent("it doesn't begin as one".to_owned()));
        }
        let mut surface = Self::default();
        let mut depth = 0_usize;
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(|error| wrong(&error))? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        surface.imports.push(import.map_err(|error| wrong(&error))?.name.name.to_owned());
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        surface.exports.push(export.map_err(|error| wrong(&error))?.name.name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Ok(surface)
    }

    /// The contract that the component names, such as `sysadmin:module@0.2.0`, whether the host speaks that version or not.
    pub(super) fn contract(&self) -> Option<String> {
        let (package, _) = CONTRACT.split_once('@')?;
        self.exports.iter().chain(&self.imports).find_map(|name| {
            let (_, version) = name.strip_prefix(package)?.strip_prefix('/')?.split_once('@')?;
            Some(format!("{package}@{version}"))
        })
    }

    /// Checks that the component keeps to a world, and returns its version of the contract. Additional exports don't matter.
    pub(super) fn check(&self, world: World) -> Result<Contract, SurfaceError> {
        let imported = check_imports(&self.imports, world)?;
        let mut versions = imported.into_iter().collect::<Vec<_>>();
        for wanted in ["describe", "tools"] {
            let ours = self.exports.iter().filter_map(|export| Contract::of(export));
            let found = ours.filter(|(interface, _)| *interface == wanted).map(|(_, version)| version).next();
            let (package, version) = CONTRACT.split_once('@').unwrap_or_default();
            versions
                .push(found.ok_or_else(|| SurfaceError::Export(format!("{package}/{wanted}@{version}")))??);
        }
        match versions.as_slice() {
            [first, others @ ..] if others.iter().all(|other| other == first) => Ok(*first),
            _ => Err(SurfaceError::Mixed),
        }
    }
}

/// Checks that a component with these imports keeps to a world, and returns the version of the contract among them.
pub(super) fn check_imports(imports: &[String], world: World) -> Result<Option<Contract>, SurfaceError> {
    let mut version = None;
    for import in imports {
        match Contract::of(import) {
            Some((interface, theirs)) => {
                let theirs = theirs?;
                if *version.get_or_insert(theirs) != theirs {
                    return Err(SurfaceError::Mixed);
                }
                match interface {
                    known if TOOL_MODULE.contains(&known) => {}
                    known if SYSTEM_MODULE.contains(&known) && theirs == Contract::Current => {
                        if world != World::System {
                            return Err(SurfaceError::SystemImport(import.clone()));
                        }
                    }
                    _ => return Err(SurfaceError::Import(import.clone())),
                }
            }
            None if WASI.iter().any(|prefix| import.starts_with(prefix)) => {}
            None => return Err(SurfaceError::Import(import.clone())),
        }
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surface(text: &str) -> Surface {
        Surface::read(&wat::parse_str(text).unwrap()).unwrap()
    }

    const EXPORTS: &str = r#"
        (component $inner (import "wasi:sockets/tcp@0.2.0" (instance)))
        (instance $nothing)
        (export "sysadmin:module/describe@0.2.0" (instance $nothing))
        (export "sysadmin:module/tools@0.2.0" (instance $nothing))
        (export "init" (instance $nothing))"#;

    fn importing(import: &str) -> Surface {
        surface(&format!(r#"(component (import "{import}" (instance)) {EXPORTS})"#))
    }

    #[test]
    fn a_module_imports_what_its_world_has_and_may_export_more() {
        for import in [
            "sysadmin:module/exec-command@0.2.0",
            "sysadmin:module/types@0.2.0",
            "wasi:cli/environment@0.2.9",
        ] {
            assert_eq!(importing(import).check(World::Tool), Ok(Contract::Current), "{import}");
        }
    }

    #[test]
    fn an_import_outside_the_world_is_refused_by_name() {
        for import in [
            "wasi:sockets/tcp@0.2.0",
            "wasi:http/outgoing-handler@0.2.0",
            "sysadmin:module/targets@0.2.0",
            "sysadmin:modules/exec-command@0.2.0",
            "evil:thing/x@1.0.0",
        ] {
            let error = importing(import).check(World::System).unwrap_err();
            assert_eq!(error, SurfaceError::Import(import.to_owned()));
        }
    }

    #[test]
    fn system_interfaces_are_for_modules_that_come_with_the_host() {
        for import in ["session", "target-control", "jobs"] {
            let system = importing(&format!("sysadmin:module/{import}@0.2.0"));
            assert_eq!(system.check(World::System), Ok(Contract::Current));
            assert!(matches!(system.check(World::Tool), Err(SurfaceError::SystemImport(_))), "{import}");
        }
    }

    #[test]
    fn another_contract_is_named_with_ours() {
        let error = importing("sysadmin:module/exec-command@9.9.9").check(World::Tool).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("sysadmin:module@9.9.9") && message.contains(CONTRACT), "{message}");
        let exports = EXPORTS.replace("0.2.0", "0.3.0");
        let error = surface(&format!("(component {exports})")).check(World::Tool).unwrap_err();
        assert_eq!(error, SurfaceError::Contract("sysadmin:module@0.3.0".to_owned()));
    }

    #[test]
    fn a_component_of_the_older_version_is_known_as_one() {
        let older = |import: &str| {
            surface(
                &format!(r#"(component (import "{import}" (instance)) {EXPORTS})"#)
                    .replace("@0.2.0", "@0.1.0"),
            )
        };
        let component = older("sysadmin:module/exec-command@0.1.0");
        assert_eq!(component.check(World::Tool), Ok(Contract::V0_1));
        // What belongs to the host's own modules has no older version.
        let system = older("sysadmin:module/session@0.1.0");
        assert!(matches!(system.check(World::System), Err(SurfaceError::Import(_))));
        let mixed = surface(&format!(
            r#"(component (import "sysadmin:module/exec-command@0.1.0" (instance)) {EXPORTS})"#
        ));
        assert_eq!(mixed.check(World::Tool), Err(SurfaceError::Mixed));
    }

    #[test]
    fn what_a_module_must_export_is_named() {
        let error = surface("(component)").check(World::Tool).unwrap_err();
        assert_eq!(error, SurfaceError::Export("sysadmin:module/describe@0.2.0".to_owned()));
    }

    #[test]
    fn what_is_no_component_is_refused() {
        let core = wat::parse_str("(module)").unwrap();
        for bytes in [&b""[..], b"not wasm", b"(component)", &core, b"\0asm\x0d\0\x01\0\xff\xff\xff"] {
            assert!(matches!(Surface::read(bytes), Err(SurfaceError::NotAComponent(_))), "{bytes:?}");
        }
    }
}
