//! The output of `ip -json`, which is a list of objects. Versions before 5.0 print empty objects for what they leave out.

use linux_sysadmin_sdk::{Output, prelude::*};
use serde::de::DeserializeOwned;

/// The objects in an output, and whether they are all that there are.
pub(crate) struct Objects<T> {
    pub(crate) list: Vec<T>,
    /// False where the host has cut the output.
    pub(crate) is_complete: bool,
}

/// Reads the objects. Of an output that was cut, those in front of the cut are read.
///
/// Problems: `COMMAND_FAILED` where ip refused, as the one of BusyBox does, which has no JSON.
pub(crate) fn objects<T: DeserializeOwned>(output: Output) -> Result<Objects<T>> {
    if output.exit_code != 0 {
        output.success("ip").map_err(|problem| {
            problem.remedy(
                "Expected ip of iproute2 with -json; the one of BusyBox and iproute2 before 4.14 lack it",
            )
        })?;
        return Ok(Objects { list: Vec::new(), is_complete: true });
    }
    let text = output.text();
    let mut rest = text.trim_start();
    rest = match rest.strip_prefix('[') {
        Some(rest) => rest,
        None if rest.is_empty() => return Ok(Objects { list: Vec::new(), is_complete: true }),
        None => return Err(Problem::unexpected("the output of ip -json", &text)),
    };
    let mut list = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
        if rest.starts_with(']') {
            return Ok(Objects { list, is_complete: true });
        }
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        match stream.next() {
            Some(Ok(object)) => {
                list.push(object);
                rest = &rest[stream.byte_offset()..];
            }
            _ if output.truncated => return Ok(Objects { list, is_complete: false }),
            _ => return Err(Problem::unexpected("the output of ip -json", &text)),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use linux_sysadmin_sdk::testkit::output;
    use serde_json::Value;

    fn count(text: &str, truncated: bool) -> Result<(usize, bool)> {
        let output = Output { truncated, ..output(0, text, "") };
        objects::<Value>(output).map(|found| (found.list.len(), found.is_complete))
    }

    #[test]
    fn a_cut_output_gives_what_stands_before_the_cut() {
        for (text, truncated, expected) in [
            ("", false, (0, true)),
            ("[]\n", false, (0, true)),
            ("[ ]\n", false, (0, true)),
            (r#"[{},{"dst":"a],[b"},{}]"#, false, (3, true)),
            (r#"[{},{"dst":"default"},{"dst":"de"#, true, (2, false)),
            (r#"[{"#, true, (0, false)),
        ] {
            assert_eq!(count(text, truncated).unwrap(), expected, "{text}");
        }
        for text in ["1: lo: <LOOPBACK>", "[{},", "[1: lo]"] {
            assert_eq!(count(text, false).unwrap_err().code, "UNEXPECTED_OUTPUT", "{text}");
        }
        let refused = objects::<Value>(output(1, "", "ip: unrecognized option '-json'")).err().unwrap();
        assert_eq!(refused.code, "COMMAND_FAILED");
        assert!(refused.remediation[0].contains("BusyBox"));
    }
}
