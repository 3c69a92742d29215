//! The text of a file in whatever encoding it has, and what a file is that has no text.

/// The number of bytes at the beginning that tell whether it is text.
const LOOKED_AT: usize = 8000;

/// The bytes with which files of some formats begin.
const FORMATS: [(&[u8], &str); 14] = [
    (b"\x7fELF", "ELF program or library"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
    (b"!<arch>", "archive of ar or deb"),
    (b"\xed\xab\xee\xdb", "RPM package"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"%PDF", "PDF"),
    (b"LPKSHHRH", "journal of systemd"),
    (b"\x30\x82", "DER, as of certificates and keys"),
];

/// The content of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Text. The encoding is named where it isn't UTF-8.
    Text { text: String, encoding: Option<&'static str> },
    /// The bytes are no text, but have a format of this name.
    Binary(&'static str),
}

/// Reads bytes as text. Bytes that are no UTF-8 and hold no zero byte are taken for ISO 8859-1, in which each byte is a
/// character.
pub(crate) fn decode(bytes: Vec<u8>) -> Decoded {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return Decoded::Text {
            text: utf16(rest, u16::from_le_bytes),
            encoding: Some("UTF-16LE with a byte order mark"),
        };
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return Decoded::Text {
            text: utf16(rest, u16::from_be_bytes),
            encoding: Some("UTF-16BE with a byte order mark"),
        };
    }
    let known = FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic));
    let beginning = bytes.get(..LOOKED_AT).unwrap_or(&bytes);
    let controls =
        beginning.iter().filter(|byte| **byte < 32 && !b"\t\n\r\x0c\x1b\x08".contains(byte)).count();
    if beginning.contains(&0) || controls * 20 > beginning.len() {
        return Decoded::Binary(known.map_or("unknown", |(_, name)| name));
    }
    match String::from_utf8(bytes) {
        Ok(text) => match text.strip_prefix('\u{feff}') {
            Some(rest) => {
                Decoded::Text { text: rest.to_owned(), encoding: Some("UTF-8 with a byte order mark") }
            }
            None => Decoded::Text { text, encoding: None },
        },
        Err(_) if known.is_some() => Decoded::Binary(known.map_or("unknown", |(_, name)| name)),
        Err(error) => {
            let bytes = error.as_bytes();
            // A part of a file may begin or end in the middle of a character.
            let text = bytes.iter().map(|byte| *byte as char).collect();
            Decoded::Text { text, encoding: Some("not UTF-8, shown as ISO 8859-1") }
        }
    }
}

/// The bytes without the parts of characters at both ends, for a part of a file in UTF-8.
pub(crate) fn whole_characters(bytes: &[u8]) -> &[u8] {
    let is_rest = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    let begin = bytes.iter().take(3).take_while(|byte| is_rest(byte)).count();
    let bytes = &bytes[begin..];
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_in_its_encoding_and_anything_else_is_named() {
        let text = |text: &str, encoding| Decoded::Text { text: text.to_owned(), encoding };
        for (bytes, expected) in [
            (&b"a\xc3\xa4\n"[..], text("aä\n", None)),
            (b"", text("", None)),
            (b"a\xe4\n", text("aä\n", Some("not UTF-8, shown as ISO 8859-1"))),
            (b"\xff\xfea\0\n\0", text("a\n", Some("UTF-16LE with a byte order mark"))),
            (b"\xfe\xff\0a", text("a", Some("UTF-16BE with a byte order mark"))),
            (b"\xef\xbb\xbfa", text("a", Some("UTF-8 with a byte order mark"))),
            (b"\x1b[1mbold\n", text("\x1b[1mbold\n", None)),
            (b"\x7fELF\x02\x01\x01\0", Decoded::Binary("ELF program or library")),
            (b"\x1f\x8b\x08\xff\xfe", Decoded::Binary("gzip")),
            (b"a\0b", Decoded::Binary("unknown")),
            (b"\x01\x02\x03\x04", Decoded::Binary("unknown")),
        ] {
            assert_eq!(decode(bytes.to_vec()), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_part_is_cut_between_characters() {
        for (bytes, expected) in [
            (&b"\xa4a\xc3"[..], &b"a"[..]),
            (b"ab", b"ab"),
            (b"\xe4b", b"\xe4b"),
            (b"a\xc3\xa4", b"a\xc3\xa4"),
        ] {
            assert_eq!(whole_characters(bytes), expected);
        }
    }
}
