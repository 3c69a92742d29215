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
    // What is left out is false or empty anyway.
    let is_nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    if members.get("default").is_some_and(is_nothing) {
        members.remove("default");
    }
    optional_is_not_null(members);
    one_list_of_types(members);
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

/// Writes alternatives of different types as one list of types. Keywords about one type don't concern the others.
fn one_list_of_types(members: &mut Map<String, Value>) {
    const OF_ONE_TYPE: [&str; 8] =
        ["items", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern"];
    let Some(Value::Array(variants)) = members.get("anyOf") else { return };
    let mut types: Vec<Value> = Vec::new();
    let mut keywords: Vec<(String, Value)> = Vec::new();
    for variant in variants {
        let Value::Object(variant) = variant else { return };
        for (keyword, value) in variant {
            match keyword.as_str() {
                "type" if value.is_string() && !types.contains(value) => types.push(value.clone()),
                // Schemas of Rust's types repeat the name of the type.
                "title" | "format" => {}
                keyword if OF_ONE_TYPE.contains(&keyword) => {
                    keywords.push((keyword.to_owned(), value.clone()))
                }
                _ => return,
            }
        }
    }
    let mut names: Vec<&String> = keywords.iter().map(|(name, _)| name).collect();
    names.sort();
    // Two integers of different widths, or two numbers with bounds, are no different types.
    let is_clear = types.len() == variants.len() && names.windows(2).all(|two| two[0] != two[1]);
    let is_number = |name: &&Value| ["integer", "number"].iter().any(|number| *name == number);
    if !is_clear || types.iter().filter(is_number).count() > 1 || members.contains_key("type") {
        return;
    }
    members.remove("anyOf");
    members.insert("type".to_owned(), Value::Array(types));
    for (keyword, value) in keywords {
        members.entry(keyword).or_insert(value);
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

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Port {
        Number(u16),
        Text(String),
    }

    /// A comment that no schema shows.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Args {
        /// Unit name
        title: String,
        count: Option<u32>,
        sort: Option<Sort>,
        /// One or several
        names: Option<Names>,
        port: Option<Port>,
        #[serde(default)]
        now: bool,
        #[serde(default)]
        units: Vec<String>,
    }

    #[test]
    fn a_schema_says_nothing_twice() {
        let expected = serde_json::json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "Unit name"},
                "count": {"type": "integer", "minimum": 0},
                "sort": {"type": "string", "enum": ["cpu", "memory"]},
                "names": {
                    "type": ["string", "array"], "items": {"type": "string"}, "description": "One or several"
                },
                "port": {"type": ["integer", "string"], "minimum": 0, "maximum": 65535},
                "now": {"type": "boolean"},
                "units": {"type": "array", "items": {"type": "string"}}
            },
            "required": ["title"],
            "additionalProperties": false
        });
        let schema: serde_json::Value = serde_json::from_str(&super::of::<Args>()).unwrap();
        assert_eq!(schema, expected);
    }
}
