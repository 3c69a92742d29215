//! Time zones by name, from the database in the component, and instants in arguments and answers.

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan, Zoned};
use strsim::levenshtein;

/// A zone that isn't in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone {
    /// At most three names that may have been meant.
    pub close: Vec<String>,
}

/// Finds a zone by its IANA name, in upper or lower case.
///
/// # Errors
///
/// Names that are close to the given one.
pub fn zone(name: &str) -> Result<TimeZone, UnknownZone> {
    let database = TimeZoneDatabase::bundled();
    match database.get(name) {
        Ok(zone) => Ok(zone),
        Err(_) => Err(UnknownZone { close: close_names(&database, name) }),
    }
}

fn close_names(database: &TimeZoneDatabase, name: &str) -> Vec<String> {
    if name.len() > 64 {
        return Vec::new();
    }
    let wanted = name.to_lowercase().replace([' ', '-'], "_");
    let mut close: Vec<(usize, String)> = database
        .available()
        .map(|known| known.as_str().to_owned())
        .filter_map(|known| {
            let lower = known.to_lowercase();
            let city = lower.rsplit('/').next().unwrap_or(&lower);
            let wanted_city = wanted.rsplit('/').next().unwrap_or(&wanted);
            let score = levenshtein(&lower, &wanted).min(1 + levenshtein(city, wanted_city));
            (score <= 1 + wanted_city.len() / 4).then_some((score, known))
        })
        .collect();
    close.sort();
    close.into_iter().map(|(_, known)| known).take(3).collect()
}

/// Parses an instant: RFC 3339 with an offset, or a local time of the zone. The note says how a local time was read that
/// happens twice or not at all.
///
/// # Errors
///
/// A sentence that says what is expected.
pub fn instant(text: &str, zone: &TimeZone) -> Result<(Timestamp, Option<String>), String> {
    let expected = "expected RFC 3339 (`2026-03-29T02:30:00+01:00`) or a local time (`2026-03-29 02:30`)";
    let (at, note) = if let Ok(at) = text.parse::<Timestamp>() {
        (at, None)
    } else {
        let local: DateTime = text.parse().map_err(|_| expected.to_owned())?;
        let ambiguous = zone.to_ambiguous_timestamp(local);
        let note = match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => None,
            AmbiguousOffset::Gap { .. } => Some("doesn't exist: the clock skips it"),
            AmbiguousOffset::Fold { .. } => Some("happens twice; the first was taken"),
        };
        let at = ambiguous.compatible().map_err(|_| "is out of range".to_owned())?;
        (at, note.map(|note| format!("the local time {text} {note}")))
    };
    if at < Timestamp::UNIX_EPOCH + 48.hours() {
        return Err("lies before 1970-01-03".to_owned());
    }
    Ok((at, note))
}

/// An instant as RFC 3339 in a zone.
pub fn local_text(at: Timestamp, zone: &TimeZone) -> String {
    let local = Zoned::new(at, zone.clone());
    let offset =
        if local.offset() == Offset::UTC { "+00:00".to_owned() } else { offset_text(local.offset()) };
    format!("{}{offset}", local.datetime())
}

/// The offset in RFC 3339, without the seconds that some zones' offsets had long ago.
fn offset_text(offset: Offset) -> String {
    let minutes = offset.seconds().abs() / 60;
    let sign = if offset.seconds() < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

/// A distance in time in its two largest units: `in 3 days 4 h`, `12 min ago`, `now`.
pub fn relative(seconds: i64) -> String {
    let total = seconds.unsigned_abs();
    let (days, hours, minutes) = (total / 86_400, total / 3_600 % 24, total / 60 % 60);
    let (years, rest) = (days / 365, days % 365);
    let plural = |n: u64, unit: &str| format!("{n} {unit}{}", if n == 1 { "" } else { "s" });
    let text = match (years, days, hours, minutes) {
        (1.., ..) if rest > 0 => format!("{} {}", plural(years, "year"), plural(rest, "day")),
        (1.., ..) => plural(years, "year"),
        (_, 1.., 1.., _) => format!("{} {hours} h", plural(days, "day")),
        (_, 1.., ..) => plural(days, "day"),
        (_, _, 1.., 1..) => format!("{hours} h {minutes} min"),
        (_, _, 1.., _) => format!("{hours} h"),
        (_, _, _, 1..) => format!("{minutes} min"),
        _ => format!("{total} s"),
    };
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {text}"),
        _ => format!("{text} ago"),
    }
}
