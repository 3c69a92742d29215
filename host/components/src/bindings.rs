//! The host's side of the contract, generated from `wit/`.
#![allow(missing_docs, unreachable_pub, clippy::all)]

wasmtime::component::bindgen!({
    world: "system-module",
    path: "../../wit",
    imports: { default: async | trappable },
    exports: { default: async },
    // The description is hashed word for word, see `Description::sha256`.
    additional_derives: [serde::Serialize],
    with: { "sysadmin:module/exec-command.output-stream": host_target::OutputStream },
});
