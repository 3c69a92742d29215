//! `cron_validate`: checks and explains a cron expression.

use linux_sysadmin_sdk::prelude::*;

use crate::describe::{describe, warnings};
use crate::dialect;
use crate::expression::{Expression, Field, Unit, When};
use crate::parse::parse_as;
use crate::problem::{self, shown};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ValidateArgs {
    /// Five fields or @nickname
    expression: String,
}

#[derive(Serialize)]
pub(crate) struct Validation {
    valid: bool,
    expression: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The values that each field matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Expanded>,
    warnings: Vec<String>,
    errors: Vec<Mistake>,
}

#[derive(Serialize)]
struct Expanded {
    minute: String,
    hour: String,
    day_of_month: String,
    month: String,
    day_of_week: String,
}

#[derive(Serialize)]
struct Mistake {
    field: &'static str,
    column: usize,
    value: String,
    message: String,
    expected: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
}

pub(crate) fn cron_validate(args: ValidateArgs, cx: &Context) -> Result<Single<Validation>> {
    let expression = shown(&args.expression);
    Ok(Single(match parse_as(&args.expression, dialect(cx)) {
        Ok(read) => Validation {
            valid: true,
            expression,
            normalized: Some(read.normalized()),
            description: Some(describe(&read)),
            fields: expanded(&read),
            warnings: warnings(&read),
            errors: Vec::new(),
        },
        Err(problems) => Validation {
            valid: false,
            expression,
            normalized: None,
            description: None,
            fields: None,
            warnings: Vec::new(),
            errors: problems.into_iter().map(Mistake::from).collect(),
        },
    }))
}

impl From<problem::Problem> for Mistake {
    fn from(problem: problem::Problem) -> Self {
        let problem::Problem { field, column, value, message, expected, suggestion } = problem;
        Self { field: field.map_or("expression", Unit::key), column, value, message, expected, suggestion }
    }
}

fn expanded(expression: &Expression) -> Option<Expanded> {
    let When::Times(fields) = &expression.when else { return None };
    let [minute, hour, day_of_month, month, day_of_week] = fields.each_ref().map(Field::expanded);
    Some(Expanded { minute, hour, day_of_month, month, day_of_week })
}
