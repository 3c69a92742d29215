//! JSON Schemas of arguments. They are kept short, because every byte of them is in the context of every model.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of an arguments struct, without members that only repeat Rust's names and types.
pub(crate) fn of<A: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        root.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    simplify(&mut schema);
    schema.to_string()
}

fn simplify(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    members.remove("title");
    if members.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int")) {
        members.remove("format");
    }
    if members.get("default") == Some(&Value::Null) {
        members.remove("default");
    }
    optional_is_not_null(members);
    // The keys below `properties` and `$defs` are the author's names, not keywords.
    for (keyword, value) in members.iter_mut() {
        match keyword.as_str() {
            "properties" | "$defs" => {
                value.as_object_mut().into_iter().flatten().for_each(|(_, value)| simplify(value))
            }
            "items" | "additionalProperties" | "not" => simplify(value),
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                value.as_array_mut().into_iter().flatten().for_each(simplify);
            }
            _ => {}
        }
    }
}

/// Removes `null` from the types: a model leaves out a member of type `Option<T>`.
fn optional_is_not_null(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(variants)) = members.get_mut("anyOf") {
        variants.retain(|variant| variant.get("type").and_then(Value::as_str) != Some("null"));
        if let [Value::Object(only)] = variants.as_slice() {
            let only = only.clone();
            members.remove("anyOf");
            for (keyword, value) in only {
                members.entry(keyword).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = members.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Sort {
        Cpu,
        Memory,
    }

    /// A comment that no schema shows.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Args {
        /// Unit name
        title: String,
        count: Option<u32>,
        sort: Option<Sort>,
    }

    #[test]
    fn a_schema_says_nothing_twice() {
        let expected = serde_json::json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "Unit name"},
                "count": {"type": "integer", "minimum": 0},
                "sort": {"type": "string", "enum": ["cpu", "memory"]}
            },
            "required": ["title"],
            "additionalProperties": false
        });
        let schema: serde_json::Value = serde_json::from_str(&super::of::<Args>()).unwrap();
        assert_eq!(schema, expected);
    }
}
