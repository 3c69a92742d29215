//! Sums up the numbers or times of many hosts: the ends, the middle, and the hosts that stand out.

use jiff::Timestamp;
use serde_json::Value;

use super::node::HostValue;
use super::node::{Host, Range, ValueOn};

/// The number of hosts that are named at one end, including those at the end itself.
const MAX_NAMED: usize = 5;
/// The hosts at an end are not named where there are more than this.
const SHARED: usize = 3;
/// The distance of Tukey's fences from the quartiles, in multiples of the distance between the quartiles.
const FENCE: f64 = 1.5;

/// One host's value as a point on a line.
struct Point<'a> {
    at: HostValue<'a>,
    number: f64,
}

/// Sums up the values. None where they are neither all numbers nor all times in the form of RFC 3339.
pub fn range<'a>(here: &[HostValue<'a>]) -> Option<Range<'a>> {
    let points = |number: fn(&Value) -> Option<f64>| -> Option<Vec<Point<'a>>> {
        here.iter().map(|at| Some(Point { at: *at, number: number(at.value)? })).collect()
    };
    let mut points = points(Value::as_f64).or_else(|| points(seconds))?;
    points.sort_by(|a, b| a.number.total_cmp(&b.number));
    let last = points.len().checked_sub(1)?;
    // Both quartiles are equally far from their ends, so that the fences mirror each other.
    let (lower, upper) = (points[last / 4].number, points[last - last / 4].number);
    let distance = FENCE * (upper - lower);
    let value = |at: usize| points[at].at.value;
    let ends = [value(0), value(last / 2), value(last)];
    let low = side(points.iter(), |number| number < lower - distance);
    // Hosts with the same value stay in their order, as in the first sort.
    points.sort_by(|a, b| b.number.total_cmp(&a.number).then(a.at.host.cmp(&b.at.host)));
    let high = side(points.iter(), |number| number > upper + distance);
    Some(Range {
        ends,
        low: low.end,
        high: high.end,
        outliers: [low.outliers, high.outliers].concat(),
        further: low.further + high.further,
    })
}

/// One end of a [`Range`].
#[derive(Default)]
struct Side<'a> {
    end: Vec<Host>,
    outliers: Vec<ValueOn<'a>>,
    further: usize,
}

/// Reads the points from an end to the middle: it finds the hosts at the end, others that stand out, and the number of the
/// rest that do.
fn side<'p, 'a: 'p>(
    points: impl Iterator<Item = &'p Point<'a>> + Clone,
    stands_out: impl Fn(f64) -> bool,
) -> Side<'a> {
    let Some(first) = points.clone().next() else { return Side::default() };
    let is_end = |point: &&Point<'_>| point.at.value == first.at.value;
    let mut end: Vec<Host> = points.clone().take_while(is_end).map(|point| point.at.host).collect();
    if end.len() > SHARED {
        end.clear();
    }
    let out: Vec<HostValue<'a>> = points
        .take_while(|point| stands_out(point.number))
        .map(|point| point.at)
        .filter(|at| !end.contains(&at.host))
        .collect();
    let named = out.len().min(MAX_NAMED - end.len());
    let mut outliers: Vec<ValueOn<'a>> = Vec::new();
    for at in &out[..named] {
        match outliers.last_mut() {
            Some((value, hosts)) if *value == at.value => hosts.push(at.host),
            _ => outliers.push((at.value, vec![at.host])),
        }
    }
    Side { end, outliers, further: out.len() - named }
}

/// A time as seconds since the epoch.
fn seconds(value: &Value) -> Option<f64> {
    // The longest form has nanoseconds and an offset such as `+00:00`.
    let text = value.as_str().filter(|text| (20..=35).contains(&text.len()))?;
    text.parse().ok().map(|time: Timestamp| time.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(values: &[Value]) -> Option<Value> {
        let here: Vec<HostValue<'_>> =
            values.iter().enumerate().map(|(host, value)| HostValue { host, value }).collect();
        let Range { ends, low, high, outliers, further } = range(&here)?;
        Some(json!([ends, low, high, outliers, further]))
    }

    fn numbers(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().map(|number| json!(number)).collect()
    }

    #[test]
    fn the_ends_and_who_stands_out_are_named() {
        let many_zeros = [&[0; 22][..], &[7, 6, 5, 4, 3, 2, 1]].concat();
        let table = [
            // The fences are at 3 - 1.5 * 4 and 7 + 1.5 * 4.
            (&[1, 2, 3, 4, 5, 6, 7, 8, 9][..], json!([[1, 5, 9], [0], [8], [], 0])),
            (&[1, 2, 3, 4, 5, 6, 7, 13, 13], json!([[1, 5, 13], [0], [7, 8], [], 0])),
            (&[1, 2, 3, 4, 5, 6, 7, 14, 15], json!([[1, 5, 15], [0], [8], [[14, [7]]], 0])),
            (&[3, 3, 3, 3, 4, 4, 4, 90, 14], json!([[3, 4, 90], [], [7], [[14, [8]]], 0])),
            (&[-9, 5, 5, 5, 5, 5, 5, -7, 6, 5, 6], json!([[-9, 5, 6], [0], [8, 10], [[-7, [7]]], 0])),
            (
                &[5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 9, 9, 9, 9],
                json!([[5, 5, 9], [], [], [[9, [16, 17, 18, 19]]], 0]),
            ),
            (&many_zeros, json!([[0, 0, 7], [], [22], [[6, [23]], [5, [24]], [4, [25]], [3, [26]]], 2])),
        ];
        for (given, expected) in table {
            assert_eq!(told(&numbers(given)).unwrap(), expected, "{given:?}");
        }
    }

    #[test]
    fn what_is_low_is_high_in_a_mirror() {
        let given = [5, 1, 9, 9, 1, 300, -200, 300, 4, 6];
        let mirrored: Vec<i64> = given.iter().map(|number| -number).collect();
        let (told, mirrored) = (told(&numbers(&given)).unwrap(), told(&numbers(&mirrored)).unwrap());
        assert_eq!((&told[1], &told[2]), (&json!([6]), &json!([5, 7])));
        assert_eq!((&told[1], &told[2]), (&mirrored[2], &mirrored[1]));
    }

    #[test]
    fn times_are_on_a_line_too() {
        let times =
            ["2026-11-20T18:17:21Z", "2026-11-21T00:00:00+02:00", "2025-01-01T00:00:00.5Z"].map(Value::from);
        let told = told(&times).unwrap();
        assert_eq!(
            told[0],
            json!(["2025-01-01T00:00:00.5Z", "2026-11-20T18:17:21Z", "2026-11-21T00:00:00+02:00"])
        );
        assert_eq!(told[1], json!([2]));
    }

    #[test]
    fn what_is_neither_is_none() {
        for values in
            [json!([1, null, 2]), json!(["2026-11-20", "18:17:21"]), json!([1, "2026-11-20T18:17:21Z"])]
        {
            assert!(told(values.as_array().unwrap()).is_none(), "{values}");
        }
    }
}
