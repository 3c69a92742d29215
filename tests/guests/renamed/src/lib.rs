//! A module for the tests: its tools, their arguments and a value have older names. The tools answer with the arguments that
//! they get.
#![forbid(unsafe_code)]

use linux_sysadmin_sdk::prelude::*;

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    DisableRootLogin,
    DisableX11Forwarding,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    lv_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resize_filesystem: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    actions: Vec<Action>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    package: Vec<String>,
}

fn tell(args: Told, _: &Context) -> Result<Single<Told>> {
    Ok(Single(args))
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Where {
    destination: String,
}

fn list(args: Where, _: &Context) -> Result<Listing<Where>> {
    Ok(vec![args].into())
}

/// The module.
pub fn module() -> Module {
    Module::new("renamed", "1.0.0", "renamed", "Was called otherwise")
        .tool(
            Tool::new("renamed_tell", "", tell)
                .alias("renamed_say")
                .alias("renamed_history")
                .argument_alias("name", "lv_name")
                .argument_alias("lv", "lv_name")
                .argument_alias("resize_fs", "resize_filesystem")
                .argument_alias("packages", "package")
                .value_alias("action", "disable_x11", "disable_x11_forwarding")
                .value_alias("actions", "disable_x11", "disable_x11_forwarding"),
        )
        .tool(
            Tool::new("renamed_list", "", list).alias("renamed_status").argument_alias("path", "destination"),
        )
}

linux_sysadmin_sdk::export!(module);
