//! The modules' side of the contract, generated from `wit/`. A module uses the rest of this crate instead.
#![allow(missing_docs, unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    world: "system-module",
    path: "wit",
    pub_export_macro: true,
    default_bindings_module: "linux_sysadmin_sdk::bindings",
    additional_derives: [PartialEq],
});
