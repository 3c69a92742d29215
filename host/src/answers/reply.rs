//! Checks a module's reply against the description of its tool, and cuts it to the limit of the call.

use serde_json::Value;

use super::envelope::Envelope;
use super::paging;
use host_base::problem::{Category, Problem};
use host_components::{Module, Reply, Shape, Tool};

/// The severities that an analysis may have.
const SEVERITIES: [&str; 4] = ["info", "warning", "high", "critical"];

/// The data of a tool's answer.
pub struct AnswerData {
    /// The data.
    pub data: Value,
    /// The part of the listing that the data is. `None` for a tool that is no listing.
    pub page: Option<PageInfo>,
}

/// The part of a listing that is returned.
pub struct PageInfo {
    /// The number of items that pass the filter.
    pub total: u64,
    /// The number of items that are returned.
    pub returned: u64,
    /// The text that the items were filtered by.
    pub filter: Option<String>,
}

impl AnswerData {
    /// Makes the answer of a listing. A module that gives a total has applied limit and filter itself; the limit is applied
    /// all the same.
    pub fn listing(items: Vec<Value>, total: Option<u64>, filter: Option<String>, limit: u32) -> Self {
        let applied = if total.is_some() { None } else { filter.as_deref() };
        let page = paging::page(items, applied, limit);
        let total = total.unwrap_or(0).max(page.total);
        let returned = page.items.len() as u64;
        Self { data: Value::Array(page.items), page: Some(PageInfo { total, returned, filter }) }
    }

    /// Writes the answer and the rest of the reply into the envelope.
    pub fn fill(self, envelope: &mut Envelope, reply: Reply) {
        if let Some(page) = self.page {
            envelope.total = Some(page.total);
            envelope.returned = Some(page.returned);
            envelope.truncated = Some(page.returned < page.total);
            envelope.filter = page.filter;
        }
        envelope.data = Some(self.data);
        envelope.summary = reply.summary;
        envelope.severity = reply.severity;
        envelope.notes = reply.notes;
    }
}

/// Reads the data of the reply. An error where it is not of the shape that the tool's description says.
pub fn parse(module: &Module, tool: &Tool, reply: &mut Reply) -> Result<Value, Problem> {
    let wrong = |reason: String| {
        let message = format!("module {} answered {} with {reason}", module.description.name, tool.name);
        Problem::new("MODULE_INVALID_REPLY", Category::Internal, message)
    };
    let data: Value =
        serde_json::from_str(&reply.data).map_err(|error| wrong(format!("no JSON: {error}")))?;
    let is_analysis = tool.shape == Shape::Analysis;
    if is_analysis != reply.summary.is_some() || is_analysis != reply.severity.is_some() {
        return Err(wrong(
            "a summary and a severity where there is no analysis, or none where there is".to_owned(),
        ));
    }
    if reply.severity.as_ref().is_some_and(|severity| !SEVERITIES.contains(&severity.as_str())) {
        return Err(wrong(format!("a severity that is none of {}", SEVERITIES.join(", "))));
    }
    match (tool.shape, &data) {
        (Shape::Listing, Value::Array(_)) | (Shape::Single | Shape::Analysis, Value::Object(_)) => Ok(data),
        (Shape::Listing, _) => Err(wrong("something else than an array".to_owned())),
        _ => Err(wrong("something else than an object".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_module_that_paged_itself_is_not_paged_again_but_the_limit_holds() {
        let items = vec![json!({"a": 1}), json!({"a": 2}), json!({"a": 3})];
        let answer = AnswerData::listing(items.clone(), Some(40), Some("no such text".into()), 2);
        let page = answer.page.unwrap();
        assert_eq!((page.returned, page.total), (2, 40));
        let answer = AnswerData::listing(items, None, Some("2".into()), 50);
        assert_eq!(answer.data, json!([{"a": 2}]));
    }
}
