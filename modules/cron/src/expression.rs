//! A parsed cron expression: five fields, or `@reboot`.

use crate::problem::echo;

/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// The minute, 0-59.
    Minute,
    /// The hour, 0-23.
    Hour,
    /// The day of the month, 1-31.
    DayOfMonth,
    /// The month, 1-12 or jan-dec.
    Month,
    /// The day of the week, 0-7 or sun-sat. 0 and 7 are both Sunday.
    DayOfWeek,
}

pub(crate) const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
pub(crate) const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

impl Unit {
    /// The fields in the order of an expression.
    pub const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The name of the field in answers.
    pub const fn key(self) -> &'static str {
        match self {
            Self::DayOfMonth => "day_of_month",
            Self::DayOfWeek => "day_of_week",
            unit => unit.name(),
        }
    }

    /// The name of the field in `man 5 crontab`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        }
    }

    /// The lowest number that the field takes.
    pub const fn first(self) -> u8 {
        match self {
            Self::DayOfMonth | Self::Month => 1,
            _ => 0,
        }
    }

    /// The highest number that the field takes.
    pub const fn last(self) -> u8 {
        match self {
            Self::Minute => 59,
            Self::Hour => 23,
            Self::DayOfMonth => 31,
            Self::Month => 12,
            Self::DayOfWeek => 7,
        }
    }

    /// The values that the field takes, in words.
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Minute => "0-59",
            Self::Hour => "0-23",
            Self::DayOfMonth => "1-31",
            Self::Month => "1-12 or jan-dec",
            Self::DayOfWeek => "0-7 (0 and 7 are Sunday) or sun-sat",
        }
    }

    /// The names that the field takes. The first one stands for [`Self::first`].
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &MONTHS,
            Self::DayOfWeek => &DAYS,
            _ => &[],
        }
    }

    /// The highest of the distinct values: the field takes 8 numbers for 7 days of the week.
    pub(crate) const fn distinct_last(self) -> u8 {
        match self {
            Self::DayOfWeek => 6,
            unit => unit.last(),
        }
    }
}

/// A set of the values of one field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values(u64);

impl Values {
    /// Whether the set has this value.
    pub const fn contains(self, value: u8) -> bool {
        value < 64 && self.0 & (1 << value) != 0
    }

    /// The values in ascending order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = u8> + Clone {
        (0..64).filter(move |&value| self.contains(value))
    }

    /// The number of values.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn insert(&mut self, value: u8) {
        self.0 |= 1 << value;
    }
}

/// One part of a field's comma separated list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// One value, such as `5`.
    Value(u8),
    /// A range, such as `*`, `*/5`, `1-10` or `1-10/2`.
    Range {
        /// The first value.
        low: u8,
        /// The last value that may be taken.
        high: u8,
        /// The step, 1 where none is written.
        step: u32,
    },
    /// A value that is drawn from the range when cron loads the crontab: `low~high`, which only cronie has.
    Random {
        /// The lowest value that may be drawn.
        low: u8,
        /// The highest value that may be drawn.
        high: u8,
    },
}

/// A parsed field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The kind of the field.
    pub unit: Unit,
    /// The field as written, with names in lower case.
    pub text: String,
    /// Whether the text starts with `*`. cron calls this, and not the values, a wildcard: `*/2` is one, and `0-59` is
    /// not.
    pub star: bool,
    /// The elements of the list.
    pub elements: Vec<Element>,
    /// The values that the list matches, with 7 as 0. Random elements add no values.
    pub values: Values,
}

impl Field {
    pub(crate) fn new(unit: Unit, text: &str, elements: Vec<Element>) -> Self {
        let mut values = Values::default();
        for element in &elements {
            let (low, high, step) = match *element {
                Element::Value(value) => (value, value, 1),
                Element::Range { low, high, step } => (low, high, step),
                Element::Random { .. } => continue,
            };
            for value in (low..=high).step_by(step as usize) {
                values.insert(if unit == Unit::DayOfWeek && value == 7 { 0 } else { value });
            }
        }
        Self { unit, text: text.to_ascii_lowercase(), star: text.starts_with('*'), elements, values }
    }

    /// Whether every value matches.
    pub fn is_full(&self) -> bool {
        (self.unit.first()..=self.unit.distinct_last()).all(|value| self.values.contains(value))
    }

    /// Whether an element is drawn at random.
    pub fn is_random(&self) -> bool {
        self.elements.iter().any(|element| matches!(element, Element::Random { .. }))
    }

    /// The shortest text with the same meaning. A leading `*` stays, since it is part of the meaning.
    fn normalized(&self) -> String {
        if self.is_random() {
            return self.text.clone();
        }
        match self.elements[..] {
            _ if self.star && self.is_full() => "*".to_owned(),
            [Element::Range { step, .. }] if self.star => format!("*/{step}"),
            _ if self.star => self.text.clone(),
            _ => compact(self.values, |value| value.to_string()),
        }
    }

    /// The text, or the rest of it where it has ranges that match nothing.
    pub(crate) fn read_as(&self) -> String {
        let backwards = |element: &Element| matches!(element, Element::Range { low, high, .. } if low > high);
        match () {
            () if self.values.is_empty() => "nothing".to_owned(),
            () if self.elements.iter().any(backwards) => {
                format!("`{}`", compact(self.values, |value| value.to_string()))
            }
            () => format!("`{}`", echo(&self.text)),
        }
    }

    /// The values as ranges and single values, with names of months and days, and `low~high` for random elements.
    pub fn expanded(&self) -> String {
        let name = |value: u8| match self.unit.names().get(usize::from(value - self.unit.first())) {
            Some(name) => name[..1].to_ascii_uppercase() + &name[1..],
            None => value.to_string(),
        };
        let mut parts = vec![compact(self.values, name)];
        parts.retain(|part| !part.is_empty());
        for element in &self.elements {
            if let Element::Random { low, high } = *element {
                parts.push(format!("{low}~{high}"));
            }
        }
        parts.join(",")
    }
}

/// The values as `1-5,7`: three or more neighbours become a range.
fn compact(values: Values, name: impl Fn(u8) -> String) -> String {
    let mut parts = Vec::new();
    for (low, high) in values_as_runs(values) {
        match high - low {
            0 => parts.push(name(low)),
            1 => parts.extend([name(low), name(high)]),
            _ => parts.push(format!("{}-{}", name(low), name(high))),
        }
    }
    parts.join(",")
}

/// The ranges of neighbouring values in ascending order, as first and last value.
pub fn values_as_runs(values: Values) -> Vec<(u8, u8)> {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for value in values.iter() {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == value => run.1 = value,
            _ => runs.push((value, value)),
        }
    }
    runs
}

/// The five fields, or the start of cron after boot.
#[derive(Clone, Debug)]
pub enum When {
    /// `@reboot`.
    Boot,
    /// The fields in the order of [`Unit::ALL`].
    Times(Box<[Field; 5]>),
}

/// A valid cron expression.
#[derive(Clone, Debug)]
pub struct Expression {
    /// The nickname that was written, with its `@`.
    pub nickname: Option<&'static str>,
    /// The times of the expression.
    pub when: When,
}

impl Expression {
    /// The same schedule with numbers for names, ranges for lists, and fields for a nickname.
    pub fn normalized(&self) -> String {
        match &self.when {
            When::Boot => "@reboot".to_owned(),
            When::Times(fields) => fields.iter().map(Field::normalized).collect::<Vec<_>>().join(" "),
        }
    }
}
