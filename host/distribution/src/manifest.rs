//! The manifest of a component on a registry: the layout that the CNCF's working group for WebAssembly describes, which other
//! tools read as well. A manifest has a configuration, and one layer with the bytes of the component.

use std::collections::BTreeMap;

use host_base::sha256::{self, is_sha256};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The media type of a manifest.
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of a component's configuration.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// The media type of a component.
const COMPONENT: &str = "application/wasm";
/// The media type that components had before.
const COMPONENT_BEFORE: &str = "application/vnd.wasm.content.layer.v1+wasm";

/// The number of bytes of the largest manifest, by the specification.
pub(crate) const LARGEST_MANIFEST: u64 = 4 << 20;

/// The key of the annotation with the contract that the component was built against.
const CONTRACT: &str = "linux-sysadmin.contract";

/// What a manifest says about a component, for whoever looks at it on the registry. Nothing of it decides anything here.
#[derive(Clone, Debug, Default)]
pub struct Annotations {
    /// The module's name.
    pub name: String,
    /// The module's version.
    pub version: String,
    /// One sentence about the module.
    pub summary: String,
    /// The license, as an SPDX expression.
    pub license: Option<String>,
    /// The address of the sources.
    pub source: Option<String>,
    /// The address of the module's own site.
    pub homepage: Option<String>,
    /// The contract that the component was built against, such as `sysadmin:module@0.2.0`.
    pub contract: String,
    /// The interfaces that the component imports.
    pub imports: Vec<String>,
}

/// A part of what a manifest stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    media_type: String,
    digest: String,
    pub(crate) size: u64,
}

impl Descriptor {
    fn of(media_type: &str, bytes: &[u8]) -> Self {
        let digest = format!("sha256:{}", sha256::of(bytes));
        Self { media_type: media_type.to_owned(), digest, size: bytes.len() as u64 }
    }

    /// The SHA-256. A component's descriptor was checked to have one.
    pub(crate) fn sha256(&self) -> &str {
        self.digest.strip_prefix("sha256:").unwrap_or_default()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    schema_version: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    config: Descriptor,
    layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The descriptor of the component in a manifest, or what is wrong with the manifest.
pub(crate) fn component(manifest: &[u8]) -> Result<Descriptor, String> {
    let expected = "expected the manifest of one WebAssembly component";
    let manifest: Manifest = serde_json::from_slice(manifest).map_err(|error| {
        format!("something else (line {}, column {}); {expected}", error.line(), error.column())
    })?;
    if manifest.schema_version != 2 || manifest.media_type.is_some_and(|media_type| media_type != MANIFEST) {
        return Err(format!("a manifest of another kind; {expected}"));
    }
    let is_component =
        |layer: &Descriptor| [COMPONENT, COMPONENT_BEFORE].contains(&layer.media_type.as_str());
    match manifest.layers.as_slice() {
        [layer] if is_component(layer) && is_sha256(layer.sha256()) => Ok(layer.clone()),
        layers => Err(format!("a manifest with {} layers that are no component; {expected}", layers.len())),
    }
}

/// What is published of a component besides its bytes.
pub(crate) struct Made {
    pub(crate) manifest: Vec<u8>,
    pub(crate) config: Vec<u8>,
}

/// Makes the manifest and the configuration. The same component gives the same bytes at any time and on any machine.
pub(crate) fn make(component: &[u8], annotations: &Annotations) -> serde_json::Result<Made> {
    let layer = Descriptor::of(COMPONENT, component);
    let config = serde_json::to_vec(&json!({
        // Readers want a time. The true one would make another manifest of the same component.
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer.digest],
        "component": {"exports": [], "imports": annotations.imports},
    }))?;
    let known = |key: &str| format!("org.opencontainers.image.{key}");
    let annotations = [
        (known("title"), Some(&annotations.name)),
        (known("version"), Some(&annotations.version)),
        (known("description"), Some(&annotations.summary)),
        (known("licenses"), annotations.license.as_ref()),
        (known("source"), annotations.source.as_ref()),
        (known("url"), annotations.homepage.as_ref()),
        (CONTRACT.to_owned(), Some(&annotations.contract)),
    ];
    let annotations =
        annotations.into_iter().filter_map(|(key, value)| Some((key, value?.clone()))).collect();
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        config: Descriptor::of(CONFIG, &config),
        layers: vec![layer],
        annotations,
    };
    Ok(Made { manifest: serde_json::to_vec(&manifest)?, config })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn annotations() -> Annotations {
        Annotations {
            name: "pacman".to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            source: Some("https://git.example/pacman".to_owned()),
            contract: "sysadmin:module@0.2.0".to_owned(),
            ..Annotations::default()
        }
    }

    #[test]
    fn a_manifest_says_license_source_and_contract_and_is_the_same_every_time() {
        let made = make(b"bytes", &annotations()).unwrap();
        assert_eq!(make(b"bytes", &annotations()).unwrap().manifest, made.manifest);
        let manifest: Value = serde_json::from_slice(&made.manifest).unwrap();
        let annotations = &manifest["annotations"];
        assert_eq!(annotations["org.opencontainers.image.licenses"], "MIT");
        assert_eq!(annotations["org.opencontainers.image.source"], "https://git.example/pacman");
        assert_eq!(annotations["linux-sysadmin.contract"], "sysadmin:module@0.2.0");
        assert_eq!(annotations["org.opencontainers.image.url"], Value::Null);
        let found = component(&made.manifest).unwrap();
        assert_eq!((found.sha256(), found.size), (sha256::of(b"bytes").as_str(), 5));
    }

    #[test]
    fn what_is_not_the_manifest_of_one_component_is_refused() {
        let made: Value = serde_json::from_slice(&make(b"bytes", &annotations()).unwrap().manifest).unwrap();
        let changed = |change: fn(&mut Value)| {
            let mut manifest = made.clone();
            change(&mut manifest);
            component(&serde_json::to_vec(&manifest).unwrap())
        };
        assert!(changed(|_| {}).is_ok());
        assert!(changed(|manifest| manifest["layers"][0]["mediaType"] = json!(COMPONENT_BEFORE)).is_ok());
        let changes: [fn(&mut Value); 8] = [
            |manifest| manifest["schemaVersion"] = json!(1),
            |manifest| manifest["mediaType"] = json!("application/vnd.oci.image.index.v1+json"),
            |manifest| manifest["layers"] = json!([]),
            |manifest| manifest["layers"] = json!([manifest["layers"][0], manifest["layers"][0]]),
            |manifest| manifest["layers"][0]["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar"),
            |manifest| manifest["layers"][0]["digest"] = json!("sha256:../../x"),
            |manifest| manifest["layers"][0]["digest"] = json!(format!("sha512:{}", "0".repeat(64))),
            |manifest| manifest["layers"][0]["size"] = json!(-1),
        ];
        for change in changes {
            assert!(
                changed(change).unwrap_err().contains("expected the manifest of one WebAssembly component")
            );
        }
        assert!(component(b"<html>").is_err());
    }
}
