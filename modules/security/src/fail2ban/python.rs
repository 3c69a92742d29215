//! Literals of Python: fail2ban prints each command of its configuration as a list of strings and numbers.

use serde_json::{Number, Value};

/// The deepest list that is read.
const DEPTH: usize = 16;

/// Reads one literal: a string, a number, `None`, `True`, `False`, or a list or tuple of them. `None` where the text is
/// something else.
pub(super) fn literal(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text.trim() };
    let value = reader.value(DEPTH)?;
    reader.rest.trim().is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '[' => self.list(']', depth.checked_sub(1)?),
            '(' => self.list(')', depth.checked_sub(1)?),
            quote @ ('\'' | '"') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn list(&mut self, end: char, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.rest = &self.rest[1..];
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(end) {
                self.rest = rest;
                return Some(Value::Array(items));
            }
            items.push(self.value(depth)?);
            self.rest = self.rest.trim_start();
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None if self.rest.starts_with(end) => {}
                None => return None,
            }
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut signs = self.rest[1..].char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' => match signs.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'r' => text.push('\r'),
                    // Other escapes than these of a quote and of itself don't matter here: they stay as they are.
                    other if other == '\\' || other == '\'' || other == '"' => text.push(other),
                    other => text.extend(['\\', other]),
                },
                sign if sign == quote => {
                    self.rest = &self.rest[1 + at + sign.len_utf8()..];
                    return Some(text);
                }
                sign => text.push(sign),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find([',', ']', ')', ' ']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "None" => Some(Value::Null),
            "True" => Some(Value::Bool(true)),
            "False" => Some(Value::Bool(false)),
            word => word
                .parse::<i64>()
                .map(Number::from)
                .ok()
                .or_else(|| word.parse().ok().and_then(Number::from_f64))
                .map(Value::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::literal;

    #[test]
    fn a_literal_is_read_as_python_reads_it() {
        for (text, expected) in [
            ("['set', 'sshd', 'maxretry', 5]", json!(["set", "sshd", "maxretry", 5])),
            (r#"["it's", '"', 'a\\b\n\'', ()]"#, json!(["it's", "\"", "a\\b\n'", []])),
            ("[[['a', 1.5], None], True, -1,]", json!([[["a", 1.5], null], true, -1])),
        ] {
            assert_eq!(literal(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_literal_is_none_and_ends() {
        for text in ["", "[", "['a'", "['a' 'b']", "['a']x", "nothing", "['\\", &"[".repeat(100_000)] {
            assert_eq!(literal(text), None);
        }
    }
}
