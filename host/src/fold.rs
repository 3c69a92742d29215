//! Stub, replaced at the merge.
use serde_json::Value;
pub struct Answered {
    pub host: String,
    pub data: Value,
    pub summary: Option<String>,
    pub severity: Option<String>,
    pub notes: Vec<String>,
}
pub struct Folded {
    pub data: Value,
    pub summary: Option<String>,
    pub severity: Option<String>,
    pub notes: Vec<String>,
}
pub fn fold(answers: &[Answered]) -> Folded {
    let data = answers.iter().map(|one| serde_json::json!({"host": one.host, "data": one.data})).collect();
    Folded { data, summary: None, severity: None, notes: Vec::new() }
}
