//! A module may depend on this crate and on nothing else: its types have the derives by the crates that this one exports.

use linux_sysadmin_sdk::prelude::*;
use linux_sysadmin_sdk::testkit::FakeTarget;

#[derive(Deserialize, JsonSchema)]
#[serde(crate = "linux_sysadmin_sdk::serde")]
#[schemars(crate = "linux_sysadmin_sdk::schemars")]
struct Args {
    /// Whom to greet
    name: String,
}

#[derive(Serialize)]
#[serde(crate = "linux_sysadmin_sdk::serde")]
struct Greeting {
    text: String,
}

fn greet(args: Args, _: &Context) -> Result<Single<Greeting>> {
    Ok(Single(Greeting { text: format!("Hello, {}!", args.name) }))
}

fn module() -> Module {
    Module::new("alone", "1.0.0", "greetings", "Greets").tool(Tool::new("greet", "Greet somebody", greet))
}

#[test]
fn types_have_their_derives_by_the_crates_that_the_sdk_exports() {
    let (data, _) = FakeTarget::new().call(&module(), "greet", json!({"name": "Zoë"})).expect("an answer");
    assert_eq!(data, json!({"text": "Hello, Zoë!"}));
    let schema = &module().description().tools[0].input_schema;
    assert!(schema.contains("Whom to greet"), "{schema}");
}
