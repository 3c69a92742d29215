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
    #[error("it speaks {0}, and this host speaks {CONTRACT}")]
    Contract(String),
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

    /// Whether the component keeps to a world. Additional exports don't matter.
    pub(super) fn check(&self, world: World) -> Result<(), SurfaceError> {
        check_imports(&self.imports, world)?;
        let (package, version) = CONTRACT.split_once('@').unwrap_or_default();
        for wanted in ["describe", "tools"] {
            let interface = format!("{package}/{wanted}@");
            let mut found = self.exports.iter().filter_map(|export| export.strip_prefix(&interface));
            match found.next() {
                Some(theirs) if theirs == version => {}
                Some(theirs) => return Err(SurfaceError::Contract(format!("{package}@{theirs}"))),
                None => return Err(SurfaceError::Export(format!("{interface}{version}"))),
            }
        }
        Ok(())
    }
}

/// Whether a component with these imports keeps to a world.
pub(super) fn check_imports(imports: &[String], world: World) -> Result<(), SurfaceError> {
    let (package, version) = CONTRACT.split_once('@').unwrap_or_default();
    for import in imports {
        let ours = import.strip_prefix(package).and_then(|rest| rest.strip_prefix('/')?.split_once('@'));
        match ours {
            Some((_, theirs)) if theirs != version => {
                return Err(SurfaceError::Contract(format!("{package}@{theirs}")));
            }
            Some((interface, _)) if TOOL_MODULE.contains(&interface) => {}
            Some((interface, _)) if SYSTEM_MODULE.contains(&interface) => {
                if world != World::System {
                    return Err(SurfaceError::SystemImport(import.clone()));
                }
            }
            None if WASI.iter().any(|prefix| import.starts_with(prefix)) => {}
            _ => return Err(SurfaceError::Import(import.clone())),
        }
    }
    Ok(())
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
        (export "sysadmin:module/describe@0.1.0" (instance $nothing))
        (export "sysadmin:module/tools@0.1.0" (instance $nothing))
        (export "init" (instance $nothing))"#;

    fn importing(import: &str) -> Surface {
        surface(&format!(r#"(component (import "{import}" (instance)) {EXPORTS})"#))
    }

    #[test]
    fn a_module_imports_what_its_world_has_and_may_export_more() {
        for import in [
            "sysadmin:module/exec-command@0.1.0",
            "sysadmin:module/types@0.1.0",
            "wasi:cli/environment@0.2.9",
        ] {
            assert_eq!(importing(import).check(World::Tool), Ok(()), "{import}");
        }
    }

    #[test]
    fn an_import_outside_the_world_is_refused_by_name() {
        for import in [
            "wasi:sockets/tcp@0.2.0",
            "wasi:http/outgoing-handler@0.2.0",
            "sysadmin:module/targets@0.1.0",
            "sysadmin:modules/exec-command@0.1.0",
            "evil:thing/x@1.0.0",
        ] {
            let error = importing(import).check(World::System).unwrap_err();
            assert_eq!(error, SurfaceError::Import(import.to_owned()));
        }
    }

    #[test]
    fn system_interfaces_are_for_modules_that_come_with_the_host() {
        for import in ["session", "target-control", "jobs"] {
            let system = importing(&format!("sysadmin:module/{import}@0.1.0"));
            assert_eq!(system.check(World::System), Ok(()));
            assert!(matches!(system.check(World::Tool), Err(SurfaceError::SystemImport(_))), "{import}");
        }
    }

    #[test]
    fn another_contract_is_named_with_ours() {
        let error = importing("sysadmin:module/exec-command@9.9.9").check(World::Tool).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("sysadmin:module@9.9.9") && message.contains(CONTRACT), "{message}");
        let exports = EXPORTS.replace("0.1.0", "0.2.0");
        let error = surface(&format!("(component {exports})")).check(World::Tool).unwrap_err();
        assert_eq!(error, SurfaceError::Contract("sysadmin:module@0.2.0".to_owned()));
    }

    #[test]
    fn what_a_module_must_export_is_named() {
        let error = surface("(component)").check(World::Tool).unwrap_err();
        assert_eq!(error, SurfaceError::Export("sysadmin:module/describe@0.1.0".to_owned()));
    }

    #[test]
    fn what_is_no_component_is_refused() {
        let core = wat::parse_str("(module)").unwrap();
        for bytes in [&b""[..], b"not wasm", b"(component)", &core, b"\0asm\x0d\0\x01\0\xff\xff\xff"] {
            assert!(matches!(Surface::read(bytes), Err(SurfaceError::NotAComponent(_))), "{bytes:?}");
        }
    }
}
