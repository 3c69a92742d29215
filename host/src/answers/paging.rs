//! Applies `filter` and `limit` to a listing whose module has not applied them itself.

use serde_json::Value;

/// The part of a listing that is returned.
pub struct Page {
    /// The items that are returned.
    pub items: Vec<Value>,
    /// The number of items that pass the filter, before `limit`.
    pub total: u64,
}

/// Keeps the items that contain the text in any of their values, in upper or lower case, and of those the first `limit`.
pub fn page(mut items: Vec<Value>, filter: Option<&str>, limit: u32) -> Page {
    if let Some(wanted) = filter {
        let wanted = wanted.to_lowercase();
        items.retain(|item| contains_text(item, &wanted));
    }
    let total = items.len() as u64;
    items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Page { items, total }
}

fn contains_text(value: &Value, wanted: &str) -> bool {
    match value {
        Value::String(text) => text.to_lowercase().contains(wanted),
        Value::Number(number) => number.to_string().contains(wanted),
        Value::Bool(_) | Value::Null => false,
        Value::Array(items) => items.iter().any(|item| contains_text(item, wanted)),
        Value::Object(members) => members.values().any(|member| contains_text(member, wanted)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn services() -> Vec<Value> {
        vec![
            json!({"service": "nginx.service", "state": "active", "pids": [12, 34]}),
            json!({"service": "cron.service", "state": "FAILED", "pids": []}),
            json!({"service": "ssh.service", "state": "active", "about": {"text": "OpenBSD Secure Shell"}}),
        ]
    }

    #[test]
    fn a_filter_looks_into_every_value_whatever_the_case() {
        for (filter, total) in
            [("failed", 1), ("SERVICE", 3), ("secure", 1), ("34", 1), ("state", 0), ("", 3)]
        {
            assert_eq!(page(services(), Some(filter), 50).total, total, "{filter}");
        }
    }

    #[test]
    fn a_limit_cuts_and_the_total_stays() {
        let page = page(services(), Some("active"), 1);
        assert_eq!((page.items.len(), page.total), (1, 2));
        assert_eq!(page.items[0]["service"], "nginx.service");
    }
}
