//! Makes changes on a real host that administrators make every day, and tests which of them ask for a person's yes. The
//! changes are data. The row of a change that asks says why.

use linux_sysadmin_tests::{everyday, way};
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_done_every_day_asks_only_where_the_data_says_why() {
    let Some((machine, rows)) = everyday(way, "what_is_done_every_day_asks_only_where_the_data_says_why")
    else {
        return;
    };
    let mut client = machine.serve_default().await;
    let mut wrong = Vec::new();
    for row in rows {
        let mut arguments = row.arguments.clone();
        arguments["dry_run"] = json!(true);
        let envelope = client.envelope(&row.tool, arguments).await;
        let (status, code) = match &row.fails {
            Some(code) => (json!("error"), json!(code)),
            None => (json!("success"), Value::Null),
        };
        let asks = envelope["needs_confirmation"] == true;
        if (&envelope["status"], &envelope["error_code"], asks) != (&status, &code, row.asks.is_some()) {
            wrong.push(format!("{}: {envelope}", row.what));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
