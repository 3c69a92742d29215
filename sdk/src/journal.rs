//! Entries of the journal, as `journalctl --output=json` prints them, one a line. See the Journal Export Formats of systemd.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

/// An entry. Fields that journalctl doesn't print are empty.
#[derive(Deserialize)]
pub struct JournalEntry<'a> {
    #[serde(rename = "__REALTIME_TIMESTAMP", borrow)]
    time: Field<'a>,
    #[serde(rename = "__CURSOR", default, borrow)]
    cursor: Field<'a>,
    #[serde(rename = "MESSAGE", default, borrow)]
    message: Field<'a>,
    #[serde(rename = "PRIORITY", default, borrow)]
    priority: Field<'a>,
    #[serde(rename = "SYSLOG_IDENTIFIER", default, borrow)]
    identifier: Field<'a>,
    #[serde(rename = "_SYSTEMD_UNIT", default, borrow)]
    systemd_unit: Field<'a>,
    #[serde(rename = "UNIT", default, borrow)]
    unit: Field<'a>,
    #[serde(rename = "_COMM", default, borrow)]
    comm: Field<'a>,
    #[serde(rename = "_SYSTEMD_INVOCATION_ID", default, borrow)]
    systemd_invocation: Field<'a>,
    #[serde(rename = "INVOCATION_ID", default, borrow)]
    invocation: Field<'a>,
    #[serde(rename = "JOB_RESULT", default, borrow)]
    job_result: Field<'a>,
}

impl<'a> JournalEntry<'a> {
    /// Reads a line of journalctl. `None` where it is no entry.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The time at which the journal received the entry, in microseconds since the epoch.
    pub fn microseconds(&self) -> Option<i64> {
        self.time.text()?.parse().ok()
    }

    /// The position of the entry in the journal, for `journalctl --after-cursor`.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.text()
    }

    /// The text of the entry. `None` where it is empty.
    pub fn message(&self) -> Option<&str> {
        self.message.text()
    }

    /// The priority as in syslog(3), from 0 (emergency) to 7 (debug).
    pub fn priority(&self) -> Option<u8> {
        self.priority.text()?.parse().ok().filter(|priority| *priority < 8)
    }

    /// Whether the entry is an error, or worse.
    pub fn is_error(&self) -> bool {
        self.priority().is_some_and(|priority| priority <= 3)
    }

    /// The name that the program gave itself.
    pub fn identifier(&self) -> Option<&str> {
        self.identifier.text()
    }

    /// The name of the process.
    pub fn process(&self) -> Option<&str> {
        self.comm.text()
    }

    /// The unit that the entry is about, or else the unit of the process that wrote it.
    pub fn unit(&self) -> Option<&str> {
        self.unit.text().or(self.systemd_unit.text())
    }

    /// Whether systemd says it about a unit. Otherwise a process of the unit says it.
    pub fn is_of_manager(&self) -> bool {
        self.unit.text().is_some()
    }

    /// The id of the unit's run, which each start changes. `None` also where the process ended before journald asked.
    pub fn invocation(&self) -> Option<&str> {
        self.invocation.text().or(self.systemd_invocation.text())
    }

    /// The end of a unit's job, such as `done`, `failed` or `dependency`, where systemd tells of one.
    pub fn job_result(&self) -> Option<&str> {
        self.job_result.text()
    }
}

/// A field: text, a list of bytes where it isn't printable, or null. Of a list of values the first one counts.
#[derive(Default)]
struct Field<'a>(Option<Cow<'a, str>>);

impl Field<'_> {
    fn text(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Field<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, bytes, or a list of them")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Field(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Field(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Field(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut bytes = Vec::new();
                loop {
                    match items.next_element::<Item<'de>>()? {
                        Some(Item::Byte(byte)) => bytes.push(byte),
                        Some(Item::Value(first)) => {
                            while items.next_element::<IgnoredAny>()?.is_some() {}
                            return Ok(first);
                        }
                        None => {
                            let text = String::from_utf8(bytes).unwrap_or_else(|error| {
                                String::from_utf8_lossy(error.as_bytes()).into_owned()
                            });
                            return Ok(Field(Some(Cow::Owned(text))));
                        }
                    }
                }
            }
        }
        deserializer.deserialize_any(Any)
    }
}

enum Item<'a> {
    Byte(u8),
    Value(Field<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Item<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a byte or a value")
            }

            fn visit_u64<E: Error>(self, byte: u64) -> Result<Self::Value, E> {
                u8::try_from(byte).map(Item::Byte).map_err(E::custom)
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Borrowed(text)))))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Owned(text.to_owned())))))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Item::Value(Field(None)))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = items.next_element::<u8>()? {
                    bytes.push(byte);
                }
                Ok(Item::Value(Field(Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())))))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::JournalEntry;

    #[test]
    fn a_message_is_text_or_bytes_and_of_several_the_first() {
        for (message, expected) in [
            (r#""a \"b\"""#, Some("a \"b\"")),
            ("[103,111,255]", Some("go\u{fffd}")),
            (r#"["first","second"]"#, Some("first")),
            ("[[103,111],[255]]", Some("go")),
            ("null", None),
            (r#""""#, None),
        ] {
            let line = format!(r#"{{"__REALTIME_TIMESTAMP":"1000123","PRIORITY":"3","MESSAGE":{message}}}"#);
            let entry = JournalEntry::parse(line.as_bytes()).unwrap();
            assert_eq!((entry.microseconds(), entry.priority()), (Some(1_000_123), Some(3)));
            assert_eq!(entry.message(), expected, "{message}");
        }
        for line in ["", "no json", r#"{"MESSAGE":"without a time"}"#] {
            assert!(JournalEntry::parse(line.as_bytes()).is_none(), "{line}");
        }
    }
}
