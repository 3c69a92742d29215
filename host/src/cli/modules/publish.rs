//! Publishes a component on a registry, where others add it from. What it says of itself becomes its annotations there.

use std::path::PathBuf;

use clap::Args;

use super::add::Outcome;
use super::fetch::{client, elsewhere, source_of};
use super::questions::say;
use crate::cli::text::wrap;
use host_components::{Examined, InstallError, ModuleInstaller};
use host_distribution::{Annotations, Reference, Source};
use host_text::visible::visible;

#[derive(Args)]
pub(super) struct Publish {
    /// The component
    file: PathBuf,
    /// Where to: `oci://REGISTRY/NAME`, which gets its version as the tag, or `oci://REGISTRY/NAME:TAG`
    #[arg(value_name = "ADDRESS")]
    address: PathBuf,
    /// The address of its sources [default: its homepage]
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// Have the tag stand for this component where it stands for another one
    #[arg(long)]
    move_tag: bool,
}

impl Publish {
    pub(super) async fn run(self, workshop: &ModuleInstaller) -> anyhow::Result<Outcome> {
        Ok(self.publish(workshop).await)
    }

    async fn publish(self, workshop: &ModuleInstaller) -> Outcome {
        let place = source_of(&self.address)?;
        // What can't be loaded here is of no use to anybody else.
        let examined = workshop.examine(&self.file, true).await?;
        let published = self.push(&place, &examined);
        workshop.forget(&examined);
        published
    }

    fn push(&self, place: &Source, examined: &Examined) -> Outcome {
        let description = examined.description();
        let reference = reference(place, &description.version)?;
        let bytes = examined.bytes()?;
        let annotations = Annotations {
            name: description.name.clone(),
            version: description.version.clone(),
            summary: description.summary.clone(),
            license: description.license.clone(),
            source: self.source.clone().or_else(|| description.homepage.clone()),
            homepage: description.homepage.clone(),
            contract: Examined::contract(&bytes),
            imports: description.imports.clone(),
        };
        if annotations.license.is_none() {
            say("It says nothing about its license, so nobody knows on which terms it may be used.")?;
        }
        if annotations.source.is_none() {
            say("It has no homepage; `--source URL` says where its sources are.")?;
        }
        let published =
            tokio::task::block_in_place(|| client().publish(&reference, &bytes, &annotations, self.move_tag));
        let published = published.map_err(|error| elsewhere(&Source::Registry(reference.clone()), &error))?;
        let what = format!("{} {}", description.name, description.version);
        let how = if published.was_there { "is there already, as" } else { "is published as" };
        say(&wrap(&visible(&format!("{what}, with the SHA-256 {}, {how}", examined.sha256())), "", "  "))?;
        Ok(Some(published.reference.to_string()))
    }
}

/// The reference under which it is published. Without a tag of its own, the version is the tag.
fn reference(place: &Source, version: &str) -> Result<Reference, InstallError> {
    let refused = |reason: String| InstallError::Elsewhere { address: place.to_string(), reason };
    let Source::Registry(reference) = place else {
        let why = "it is no registry; expected `oci://REGISTRY/NAME` or `oci://REGISTRY/NAME:TAG`";
        return Err(refused(why.to_owned()));
    };
    if reference.tag.is_some() || reference.digest.is_some() {
        return Ok(reference.clone());
    }
    // No tag has a plus sign.
    let tagged = format!("{reference}:{}", version.replace('+', "_"));
    tagged.parse().map_err(|_| refused(format!("version {version:?} can't be a tag, so name one")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_tag_unless_another_one_is_named() {
        let of = |written: &str, version: &str| {
            reference(&Source::of(written.as_ref()).unwrap(), version)
                .map(|reference| reference.to_string())
                .map_err(|error| error.to_string())
        };
        for (written, version, expected) in [
            ("oci://r.example/x", "1.0.0", "oci://r.example/x:1.0.0"),
            ("oci://r.example/x", "1.0.0+b", "oci://r.example/x:1.0.0_b"),
            ("oci://r.example/x:stable", "1.0.0", "oci://r.example/x:stable"),
        ] {
            assert_eq!(of(written, version).as_deref(), Ok(expected));
        }
        for (written, version, word) in [
            ("oci://r.example/x", "-1", "can't be a tag"),
            ("pacman.wasm", "1.0.0", "no registry"),
            ("https://r.example/x", "1.0.0", "no registry"),
        ] {
            assert!(of(written, version).is_err_and(|error| error.contains(word)), "{written}");
        }
    }
}
