//! Profiles of services as resources: `linux-sysadmin://knowledge/nginx`.

use rmcp::ErrorData;
use rmcp::model::{
    ArgumentInfo, CompleteResult, CompletionInfo, ListResourceTemplatesResult, ListResourcesResult,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};

use host_knowledge::Knowledge;
use host_text::visible::excerpt;

const BEFORE_ID: &str = "linux-sysadmin://knowledge/";
const TEMPLATE: &str = "linux-sysadmin://knowledge/{id}";
/// The media type of RFC 9512.
const YAML: &str = "application/yaml";

/// Lists a resource for each profile.
pub(super) fn list(knowledge: &Knowledge) -> ListResourcesResult {
    let resources = knowledge.all().iter().map(|known| {
        let profile = &known.profile;
        Resource::new(format!("{BEFORE_ID}{}", profile.id), profile.id.clone())
            .with_title(profile.name.clone())
            .with_description(profile.summary.clone())
            .with_mime_type(YAML)
    });
    ListResourcesResult::with_all_items(resources.collect())
}

/// The one template, by which a client can name any profile.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(TEMPLATE, "knowledge")
        .with_title("Service profile")
        .with_description("Units, configuration, logs, ports, health checks and troubleshooting of a service")
        .with_mime_type(YAML);
    ListResourceTemplatesResult::with_all_items(vec![template])
}

/// Reads a profile as YAML.
pub(super) fn read(knowledge: &Knowledge, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let known = uri
        .strip_prefix(BEFORE_ID)
        .and_then(|id| knowledge.all().iter().find(|known| known.profile.id == id));
    let known = known.ok_or_else(|| {
        let message = format!(
            "there is no resource {}: expected {BEFORE_ID} and a profile's id, as resources/list has them",
            excerpt(uri, 100)
        );
        ErrorData::resource_not_found(message, None)
    })?;
    let contents = ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some(YAML.to_owned()),
        text: known.yaml(),
        meta: None,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Completes the id of a profile.
pub(super) fn complete(
    knowledge: &Knowledge,
    of: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let is_known = matches!(of, Reference::Resource(reference) if reference.uri == TEMPLATE);
    if !is_known || argument.name != "id" {
        let message = format!("expected the argument id of {TEMPLATE}");
        return Err(ErrorData::invalid_params(message, None));
    }
    let ids = knowledge.all().iter().map(|known| &known.profile.id);
    let fitting: Vec<_> = ids.filter(|id| id.starts_with(&argument.value)).cloned().collect();
    let (total, most) = (fitting.len(), CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    completion.has_more = Some(total > most);
    completion.total = Some(u32::try_from(total).unwrap_or(u32::MAX));
    completion.values = fitting.into_iter().take(most).collect();
    Ok(CompleteResult::new(completion))
}

#[cfg(test)]
mod tests {
    use super::*;
    use host_knowledge::LazyKnowledge;

    #[test]
    fn every_profile_can_be_listed_and_read() {
        let lazy = LazyKnowledge::default();
        let listed = list(lazy.get()).resources;
        assert!(listed.len() >= 50);
        for resource in &listed {
            let read = read(lazy.get(), &resource.uri).unwrap();
            let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!() };
            let written: serde_json::Value = serde_yaml::from_str(text).unwrap();
            assert_eq!(written["id"], resource.name.as_str());
        }
        for uri in [
            "linux-sysadmin://knowledge/nonsense",
            "file:///etc/passwd",
            "linux-sysadmin://knowledge/../x",
            "",
        ] {
            let error = read(lazy.get(), uri).unwrap_err();
            assert!(
                error.message.contains("expected linux-sysadmin://knowledge/"),
                "{uri}: {}",
                error.message
            );
        }
    }

    #[test]
    fn ids_are_completed_from_their_beginning() {
        let lazy = LazyKnowledge::default();
        let complete = |uri: &str, name: &str, value: &str| {
            complete(lazy.get(), &Reference::for_resource(uri), &ArgumentInfo::new(name, value))
        };
        let fitting = complete(TEMPLATE, "id", "systemd-").unwrap().completion;
        assert_eq!(fitting.values, ["systemd-networkd", "systemd-resolved", "systemd-timesyncd"]);
        assert_eq!((fitting.total, fitting.has_more), (Some(3), Some(false)));
        assert!(complete(TEMPLATE, "id", "").unwrap().completion.values.len() >= 50);
        assert!(complete(TEMPLATE, "id", "nonsense").unwrap().completion.values.is_empty());
        assert!(complete(TEMPLATE, "name", "").is_err() && complete("file:///{id}", "id", "").is_err());
    }
}
