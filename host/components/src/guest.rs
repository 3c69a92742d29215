//! A component that is ready to be started, of any version of the contract that the host speaks.

use serde::Serialize;
use wasmtime::Store;
use wasmtime::component::InstancePre;

use super::bindings::SystemModulePre;
use super::bindings::exports::sysadmin::module::{describe, tools};
use super::bindings::sysadmin::module::types::Problem;
use super::contract_0_1::{
    self, bindings::ToolModulePre, bindings::exports::sysadmin::module::tools as tools_0_1,
};
use super::store::State;
use super::surface::Contract;

/// A component that is ready to be started.
pub(super) enum Guest {
    V0_1(ToolModulePre<State>),
    Current(SystemModulePre<State>),
}

/// What a component says of itself. The JSON is word for word what it says, in its own version's shape.
pub(super) struct Said {
    pub(super) description: describe::Description,
    pub(super) json: Vec<u8>,
}

impl Guest {
    pub(super) fn new(pre: InstancePre<State>, contract: Contract) -> wasmtime::Result<Self> {
        Ok(match contract {
            Contract::V0_1 => Self::V0_1(ToolModulePre::new(pre)?),
            Contract::Current => Self::Current(SystemModulePre::new(pre)?),
        })
    }

    /// Has the component describe itself twice, in the same store.
    pub(super) async fn describe_twice(&self, mut store: &mut Store<State>) -> wasmtime::Result<[Said; 2]> {
        Ok(match self {
            Self::V0_1(pre) => {
                let instance = pre.instantiate_async(&mut store).await?;
                let describe = instance.sysadmin_module_describe();
                let both =
                    [describe.call_describe(&mut store).await?, describe.call_describe(&mut store).await?];
                both.map(|said| Said { json: json(&said), description: contract_0_1::description(said) })
            }
            Self::Current(pre) => {
                let instance = pre.instantiate_async(&mut store).await?;
                let describe = instance.sysadmin_module_describe();
                let both =
                    [describe.call_describe(&mut store).await?, describe.call_describe(&mut store).await?];
                both.map(|said| Said { json: json(&said), description: said })
            }
        })
    }

    /// Starts the component and calls a tool.
    pub(super) async fn call(
        &self,
        mut store: &mut Store<State>,
        tool: &str,
        arguments: &str,
        context: tools::Context,
    ) -> wasmtime::Result<Result<tools::Reply, Problem>> {
        match self {
            Self::V0_1(pre) => {
                let instance = pre.instantiate_async(&mut store).await?;
                let tools::Context { limit, filter } = context;
                let context = tools_0_1::Context { limit, filter };
                let called =
                    instance.sysadmin_module_tools().call_call(&mut store, tool, arguments, &context);
                Ok(called.await?.map(|reply| {
                    let tools_0_1::Reply { data, total, summary, severity, notes } = reply;
                    tools::Reply { data, total, summary, severity, notes }
                }))
            }
            Self::Current(pre) => {
                let instance = pre.instantiate_async(&mut store).await?;
                instance.sysadmin_module_tools().call_call(&mut store, tool, arguments, &context).await
            }
        }
    }
}

fn json(said: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(said).unwrap_or_default()
}
