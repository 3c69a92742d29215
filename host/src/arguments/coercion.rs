//! Reads a value of another type than the argument's where it can mean one thing only: a text for a list of one, `"5"` for
//! the number 5, the number 755 for a text.
//!
//! What the caller says of confirming a call and of a dry run is never read otherwise than it stands: a mistake there
//! would change a machine.

use serde_json::{Map, Number, Value};

use host_components::host_arguments::{CONFIRMED, DRY_RUN};

/// The longest text that is read as JSON, in bytes.
const LONGEST: usize = 64 << 10;

/// Reads each argument as the schema wants it. Returns how values were read, in words without the values themselves.
pub(super) fn coerce(schema: &Value, arguments: &mut Map<String, Value>) -> Vec<String> {
    let mut read = Vec::new();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return read };
    for (name, value) in arguments {
        if [CONFIRMED, DRY_RUN].contains(&name.as_str()) {
            continue;
        }
        if let Some(property) = properties.get(name) {
            fit(property, value, name, &mut read);
        }
    }
    read
}

/// The JSON types that a value may have.
#[derive(Clone, Copy, Debug, Default)]
struct Types {
    text: bool,
    integer: bool,
    number: bool,
    boolean: bool,
    list: bool,
    object: bool,
    /// True where the schema says of values what isn't read here. Such a value stays as it is.
    unknown: bool,
}

impl Types {
    fn of(schema: &Value) -> Self {
        let mut types = Self::default();
        types.add(schema);
        types
    }

    fn add(&mut self, schema: &Value) {
        let Some(schema) = schema.as_object() else {
            self.unknown = true;
            return;
        };
        if ["$ref", "allOf", "not", "const", "if"].iter().any(|keyword| schema.contains_key(*keyword)) {
            self.unknown = true;
        }
        if let Some(variants) = variants(schema) {
            variants.iter().for_each(|variant| self.add(variant));
            return;
        }
        match (schema.get("type"), schema.get("enum")) {
            (Some(Value::String(name)), _) => self.add_name(name),
            (Some(Value::Array(names)), _) => {
                names.iter().filter_map(Value::as_str).for_each(|name| self.add_name(name));
            }
            (None, Some(Value::Array(values))) if values.iter().all(Value::is_string) => self.text = true,
            _ => self.unknown = true,
        }
    }

    fn add_name(&mut self, name: &str) {
        match name {
            "string" => self.text = true,
            "integer" => self.integer = true,
            "number" => self.number = true,
            "boolean" => self.boolean = true,
            "array" => self.list = true,
            "object" => self.object = true,
            "null" => {}
            _ => self.unknown = true,
        }
    }

    fn has(self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            Value::Bool(_) => self.boolean,
            Value::Number(number) => self.number || (self.integer && number.as_f64().is_some_and(is_whole)),
            Value::String(_) => self.text,
            Value::Array(_) => self.list,
            Value::Object(_) => self.object,
        }
    }
}

fn variants(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()
}

/// The part of a schema that is for values of this type. None where several parts are.
fn part(schema: &Value, is_it: impl Fn(Types) -> bool) -> Option<&Value> {
    let Some(variants) = schema.as_object().and_then(variants) else { return Some(schema) };
    let mut fitting = variants.iter().filter(|variant| is_it(Types::of(variant)));
    fitting.next().filter(|_| fitting.next().is_none())
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

/// Replaces the value by what the schema wants, where it can be one thing only.
fn fit(schema: &Value, value: &mut Value, name: &str, read: &mut Vec<String>) {
    let types = Types::of(schema);
    if types.unknown {
        return;
    }
    if types.has(value) {
        within(schema, types, value, name, read);
        return;
    }
    let Some((meant, how)) = meaning(types, value) else { return };
    let values = schema.get("enum").and_then(Value::as_array);
    if meant.is_string() && values.is_some_and(|values| !values.contains(&meant)) {
        return;
    }
    *value = meant;
    read.push(format!("{name} as {how}"));
    within(schema, types, value, name, read);
}

/// Reads the parts of a list and of an object. A whole number such as 5.0 becomes an integer.
fn within(schema: &Value, types: Types, value: &mut Value, name: &str, read: &mut Vec<String>) {
    match value {
        Value::Number(number) if types.integer && !types.number && number.is_f64() => {
            let whole = number.to_string();
            if let Some(whole) = whole.strip_suffix(".0").and_then(|whole| whole.parse::<i64>().ok()) {
                *number = whole.into();
            }
        }
        Value::Array(items) => {
            let list = part(schema, |types| types.list);
            let Some(of_item) = list.and_then(|list| list.get("items")) else { return };
            for item in items {
                fit(of_item, item, &format!("an item of {name}"), read);
            }
        }
        Value::Object(members) => {
            let object = part(schema, |types| types.object);
            let properties = object.and_then(|object| object.get("properties")?.as_object());
            for (member, value) in members {
                if let Some(property) = properties.and_then(|properties| properties.get(member)) {
                    fit(property, value, &format!("{name}.{member}"), read);
                }
            }
        }
        _ => {}
    }
}

/// The value of the wanted types that a value means, and how it is read. None where there is none.
fn meaning(types: Types, value: &Value) -> Option<(Value, &'static str)> {
    match value {
        Value::String(text) => {
            let number = integer(text).filter(|_| types.integer || types.number);
            let truth = boolean(text).filter(|_| types.boolean);
            let object = json(text, '{').filter(|_| types.object);
            let readings = [
                number.map(|read| (read, "a number")),
                truth.map(|read| (read, "true or false")),
                object.map(|read| (read, "the object that its text holds")),
            ];
            // Where one value is taken as well as a list, one value is meant.
            readings.into_iter().flatten().next().or_else(|| list(text).filter(|_| types.list))
        }
        Value::Number(number) => {
            let is_integer = number.is_i64() || number.is_u64();
            let text = (types.text && is_integer).then(|| (Value::from(number.to_string()), "a text"));
            text.or_else(|| list_of_one(types, value))
        }
        Value::Object(_) => list_of_one(types, value),
        Value::Array(items) => match items.as_slice() {
            [one] if types.has(one) && !one.is_null() => Some((one.clone(), "the one item of its list")),
            _ => None,
        },
        Value::Null | Value::Bool(_) => None,
    }
}

fn list_of_one(types: Types, value: &Value) -> Option<(Value, &'static str)> {
    types.list.then(|| (Value::Array(vec![value.clone()]), "a list of one"))
}

/// A text for a list is its one item, or a list that is written as JSON. A text with blanks or commas could be several
/// items.
fn list(text: &str) -> Option<(Value, &'static str)> {
    if text.trim_start().starts_with('[') {
        return json(text, '[').map(|list| (list, "the list that its text holds"));
    }
    let could_be_several = |character: char| character.is_whitespace() || character == ',';
    let is_one = !text.is_empty() && !text.contains(could_be_several);
    is_one.then(|| (Value::Array(vec![text.into()]), "a list of one"))
}

/// A number in the one way in which it is written.
fn integer(text: &str) -> Option<Value> {
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then(|| Value::Number(Number::from(number)))
}

fn boolean(text: &str) -> Option<Value> {
    match text {
        "true" | "True" => Some(true.into()),
        "false" | "False" => Some(false.into()),
        _ => None,
    }
}

/// The JSON value that begins with this bracket.
fn json(text: &str, bracket: char) -> Option<Value> {
    if text.len() > LONGEST || !text.trim_start().starts_with(bracket) {
        return None;
    }
    host_base::strict_json::parse(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {
            "packages": {"type": "array", "items": {"type": "string"}},
            "names": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "ports": {"type": "array", "items": {"type": "integer"}},
            "steps": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
            "kinds": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "lines": {"type": "integer", "minimum": 1},
            "ratio": {"type": "number"},
            "now": {"type": "boolean"},
            "mode": {"type": "string"},
            "sort": {"enum": ["cpu", "memory"]},
            "either": {"type": ["integer", "string"]},
            "pid": {"type": ["integer", "array"], "items": {"type": "integer"}},
            "config": {"type": "object", "properties": {"maxretry": {"type": "integer"}, "ignore": {"type": "array", "items": {"type": "string"}}}},
            "rules": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            "anything": {},
            "reference": {"$ref": "#/$defs/x"},
            "dry_run": {"type": "boolean"},
            "confirmed": {"type": "boolean"},
        }})
    }

    fn coerced(given: Value) -> (Value, Vec<String>) {
        let mut arguments = given.as_object().unwrap().clone();
        let read = coerce(&schema(), &mut arguments);
        (Value::Object(arguments), read)
    }

    #[test]
    fn what_can_mean_one_thing_only_is_read_so_and_the_answer_says_how() {
        for (given, meant, how) in [
            (json!({"packages": "nginx"}), json!({"packages": ["nginx"]}), "packages as a list of one"),
            (
                json!({"packages": "[\"nginx\", \"curl\"]"}),
                json!({"packages": ["nginx", "curl"]}),
                "packages as the list that its text holds",
            ),
            (
                json!({"packages": 7}),
                json!({"packages": ["7"]}),
                "packages as a list of one; an item of packages as a text",
            ),
            (
                json!({"ports": "443"}),
                json!({"ports": [443]}),
                "ports as a list of one; an item of ports as a number",
            ),
            (json!({"ports": ["80", 443]}), json!({"ports": [80, 443]}), "an item of ports as a number"),
            (json!({"kinds": "a"}), json!({"kinds": ["a"]}), "kinds as a list of one"),
            (
                json!({"steps": [["ls"], "id"]}),
                json!({"steps": [["ls"], ["id"]]}),
                "an item of steps as a list of one",
            ),
            (json!({"lines": "5"}), json!({"lines": 5}), "lines as a number"),
            (json!({"lines": "-5"}), json!({"lines": -5}), "lines as a number"),
            (json!({"pid": "5"}), json!({"pid": 5}), "pid as a number"),
            (json!({"pid": ["5"]}), json!({"pid": [5]}), "an item of pid as a number"),
            (json!({"ratio": "5"}), json!({"ratio": 5}), "ratio as a number"),
            (json!({"now": "true"}), json!({"now": true}), "now as true or false"),
            (json!({"now": "False"}), json!({"now": false}), "now as true or false"),
            (json!({"mode": 755}), json!({"mode": "755"}), "mode as a text"),
            (json!({"mode": ["0644"]}), json!({"mode": "0644"}), "mode as the one item of its list"),
            (
                json!({"config": "{\"maxretry\": \"5\"}"}),
                json!({"config": {"maxretry": 5}}),
                "config as the object that its text holds; config.maxretry as a number",
            ),
            (
                json!({"config": {"ignore": "::1"}}),
                json!({"config": {"ignore": ["::1"]}}),
                "config.ignore as a list of one",
            ),
            (json!({"rules": {"port": 1}}), json!({"rules": [{"port": 1}]}), "rules as a list of one"),
        ] {
            let (read, said) = coerced(given.clone());
            assert_eq!((read, said.join("; ").as_str()), (meant, how), "{given}");
        }
        // A whole number is an integer however it is written.
        assert_eq!(coerced(json!({"lines": 5.0})), (json!({"lines": 5}), Vec::new()));
    }

    #[test]
    fn what_could_mean_something_else_stays_as_it_is() {
        for given in [
            json!({"packages": "nginx curl"}),
            json!({"packages": "nginx,curl"}),
            json!({"packages": ""}),
            json!({"packages": true}),
            json!({"packages": null}),
            json!({"packages": "[\"nginx\""}),
            json!({"names": "nginx curl"}),
            json!({"names": ["a", "b"]}),
            json!({"lines": "05"}),
            json!({"lines": "+5"}),
            json!({"lines": "5 "}),
            json!({"lines": "five"}),
            json!({"lines": "5.5"}),
            json!({"lines": 5.5}),
            json!({"lines": "99999999999999999999"}),
            json!({"lines": [5, 6]}),
            json!({"lines": []}),
            json!({"now": "yes"}),
            json!({"now": 1}),
            json!({"now": "1"}),
            json!({"mode": 1.5}),
            json!({"mode": true}),
            json!({"mode": ["a", "b"]}),
            json!({"mode": [["a"]]}),
            json!({"mode": {"a": 1}}),
            json!({"sort": "CPU"}),
            json!({"sort": 5}),
            json!({"either": "5"}),
            json!({"either": 5}),
            json!({"config": "maxretry"}),
            json!({"anything": "5", "reference": "5", "unknown": "5"}),
        ] {
            assert_eq!(coerced(given.clone()), (given.clone(), Vec::new()), "{given}");
        }
    }

    #[test]
    fn a_confirmation_and_a_dry_run_are_never_read_otherwise_than_they_stand() {
        for name in ["dry_run", "confirmed"] {
            for said in [json!("true"), json!("false"), json!(["true"]), json!([true]), json!(1)] {
                let given = json!({name: said});
                assert_eq!(coerced(given.clone()), (given, Vec::new()));
            }
        }
    }
}
