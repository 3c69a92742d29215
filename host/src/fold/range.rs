//! Numbers and times of many hosts: the ends, the middle, and who stands out.

use jiff::Timestamp;
use serde_json::Value;

use super::compare::At;
use super::node::{Host, Range, Side};

/// Hosts that are named at an end.
const MOST_NAMED: usize = 5;
/// As many hosts at one end aren't its hosts any more.
const SHARED: usize = 3;
/// Where a fence is: Tukey's, in distances of the quartiles.
const FENCE: f64 = 1.5;

/// One host's value as a point on a line.
struct Point<'a> {
    at: At<'a>,
    number: f64,
}

/// None where they aren't all numbers, or all times in the form of RFC 3339.
pub fn range<'a>(here: &[At<'a>]) -> Option<Range<'a>> {
    let points = |number: fn(&Value) -> Option<f64>| -> Option<Vec<Point<'a>>> {
        here.iter().map(|at| Some(Point { at: *at, number: number(at.value)? })).collect()
    };
    let mut points = points(Value::as_f64).or_else(|| points(seconds))?;
    points.sort_by(|a, b| a.number.total_cmp(&b.number));
    let last = points.len().checked_sub(1)?;
    // The same distance from both ends, so that the fences are mirror images of each other.
    let (lower, upper) = (points[last / 4].number, points[last - last / 4].number);
    let distance = FENCE * (upper - lower);
    let value = |at: usize| points[at].at.value;
    let ends = [value(0), value(last / 2), value(last)];
    let low = side(points.iter(), |number| number < lower - distance);
    // Hosts with the same value stand in their order, here too.
    points.sort_by(|a, b| b.number.total_cmp(&a.number).then(a.at.host.cmp(&b.at.host)));
    let high = side(points.iter(), |number| number > upper + distance);
    Some(Range { ends, low, high })
}

/// From the end to the middle: whoever is at the end, and who stands out.
fn side<'p, 'a: 'p>(
    points: impl Iterator<Item = &'p Point<'a>> + Clone,
    stands_out: impl Fn(f64) -> bool,
) -> Side<'a> {
    let Some(end) = points.clone().next().map(|point| point.number) else { return Side::default() };
    let at_the_end = points.clone().take_while(|point| point.number == end).count();
    let out = points.clone().take_while(|point| stands_out(point.number)).count();
    let named = match out {
        0 if at_the_end > SHARED => 0,
        0 => at_the_end,
        out => out.min(MOST_NAMED),
    };
    let mut hosts: Vec<(&'a Value, Vec<Host>)> = Vec::new();
    for Point { at, .. } in points.take(named) {
        match hosts.last_mut() {
            Some((value, hosts)) if *value == at.value => hosts.push(at.host),
            _ => hosts.push((at.value, vec![at.host])),
        }
    }
    Side { hosts, further: out - named.min(out) }
}

/// Since the epoch.
fn seconds(value: &Value) -> Option<f64> {
    // A date with a time of day and an offset, which is at most `+00:00` after nanoseconds.
    let text = value.as_str().filter(|text| (20..=35).contains(&text.len()))?;
    text.parse().ok().map(|time: Timestamp| time.as_duration().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(values: &[Value]) -> Option<(Value, Value, Value)> {
        let here: Vec<At<'_>> = values.iter().enumerate().map(|(host, value)| At { host, value }).collect();
        let range = range(&here)?;
        let side = |side: Side<'_>| json!([side.hosts, side.further]);
        Some((json!(range.ends), side(range.low), side(range.high)))
    }

    fn numbers(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().map(|number| json!(number)).collect()
    }

    #[test]
    fn who_stands_out_is_named_and_so_are_the_ends() {
        let table = [
            // The fences are at 3 - 1.5 * 4 and 7 + 1.5 * 4.
            (
                &[1, 2, 3, 4, 5, 6, 7, 8, 9][..],
                json!([1, 5, 9]),
                json!([[[1, [0]]], 0]),
                json!([[[9, [8]]], 0]),
            ),
            (
                &[1, 2, 3, 4, 5, 6, 7, 8, 13],
                json!([1, 5, 13]),
                json!([[[1, [0]]], 0]),
                json!([[[13, [8]]], 0]),
            ),
            (
                &[3, 3, 3, 3, 4, 4, 4, 90, 14],
                json!([3, 4, 90]),
                json!([[], 0]),
                json!([[[90, [7]], [14, [8]]], 0]),
            ),
            (
                &[-9, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 5, 6],
                json!([-9, 5, 6]),
                json!([[[-9, [0]]], 0]),
                json!([[[6, [10, 12]]], 0]),
            ),
            (
                &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 6, 5, 4, 3, 2, 1],
                json!([0, 0, 7]),
                json!([[], 0]),
                json!([[[7, [22]], [6, [23]], [5, [24]], [4, [25]], [3, [26]]], 2]),
            ),
        ];
        for (given, ends, low, high) in table {
            assert_eq!(told(&numbers(given)).unwrap(), (ends, low, high), "{given:?}");
        }
    }

    #[test]
    fn the_order_of_the_hosts_is_no_ones_rank() {
        let mirrored = |given: &[i64]| numbers(&given.iter().map(|number| -number).collect::<Vec<_>>());
        let given = [5, 1, 9, 9, 1, 300, -200, 300];
        let ((_, low, high), (_, mirrored_low, mirrored_high)) =
            (told(&numbers(&given)).unwrap(), told(&mirrored(&given)).unwrap());
        let hosts = |side: &Value| -> Vec<Value> {
            side[0].as_array().unwrap().iter().map(|pair| pair[1].clone()).collect()
        };
        assert_eq!((hosts(&low), hosts(&high)), (hosts(&mirrored_high), hosts(&mirrored_low)));
        assert_eq!(hosts(&high), [json!([5, 7])]);
    }

    #[test]
    fn times_are_on_a_line_too() {
        let times =
            ["2026-11-20T18:17:21Z", "2026-11-21T00:00:00+02:00", "2025-01-01T00:00:00.5Z"].map(Value::from);
        let (ends, low, _) = told(&times).unwrap();
        assert_eq!(
            ends,
            json!(["2025-01-01T00:00:00.5Z", "2026-11-20T18:17:21Z", "2026-11-21T00:00:00+02:00"])
        );
        assert_eq!(low[0][0][1], json!([2]));
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
