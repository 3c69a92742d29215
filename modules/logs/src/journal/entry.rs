//! An entry of the journal, as `journalctl --output=json` prints it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use linux_sysadmin_sdk::prelude::*;
use serde::de::{IgnoredAny, SeqAccess, Visitor};

use crate::level::Level;
use crate::line::Line;

/// An entry, with its cursor.
pub(crate) struct Entry {
    pub(crate) line: Line,
    pub(crate) cursor: String,
}

/// Reads entries. It keeps each name once in memory.
#[derive(Default)]
pub(crate) struct EntryReader {
    names: HashMap<String, Rc<str>>,
}

impl EntryReader {
    /// Reads a line of `journalctl`. None where it is no entry.
    pub(crate) fn entry(&mut self, text: &[u8]) -> Option<Entry> {
        let raw: Raw<'_> = serde_json::from_slice(text).ok()?;
        let at = raw.time.text()?.parse().ok()?;
        let unit = raw.unit.text().or(raw.systemd_unit.text()).map(|unit| self.name(&unit));
        let source = raw.identifier.text().or(raw.comm.text());
        let source = source.map(|name| self.name(&name));
        let source = source.or_else(|| unit.clone()).unwrap_or_else(|| self.name("journal"));
        let level = raw
            .priority
            .text()
            .and_then(|text| Some(Level(text.parse::<u8>().ok().filter(|level| *level < 8)?)));
        let message = raw.message.text().unwrap_or_default().into_owned();
        Some(Entry {
            line: Line { at: Some(at), source, unit, level, message },
            cursor: raw.cursor.text()?.into_owned(),
        })
    }

    fn name(&mut self, name: &str) -> Rc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let shared: Rc<str> = name.strip_suffix(".service").unwrap_or(name).into();
        self.names.insert(name.to_owned(), shared.clone());
        shared
    }
}

#[derive(Deserialize)]
struct Raw<'a> {
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
}

/// A field: text, a list of bytes where it isn't printable, or null. Of a list of values the first one counts.
#[derive(Default)]
struct Field<'a>(Option<Cow<'a, str>>);

impl<'a> Field<'a> {
    fn text(&self) -> Option<Cow<'_, str>> {
        self.0.as_deref().filter(|text| !text.is_empty()).map(Cow::Borrowed)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Field<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Field<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text, bytes, or a list of them")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Field(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Field(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
                Ok(Field(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> std::result::Result<Self::Value, A::Error> {
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
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Item<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a byte or a value")
            }

            fn visit_u64<E: serde::de::Error>(self, byte: u64) -> std::result::Result<Self::Value, E> {
                u8::try_from(byte).map(Item::Byte).map_err(E::custom)
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Borrowed(text)))))
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(Some(Cow::Owned(text.to_owned())))))
            }

            fn visit_unit<E>(self) -> std::result::Result<Self::Value, E> {
                Ok(Item::Value(Field(None)))
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> std::result::Result<Self::Value, A::Error> {
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
