//! The imports that only the host's own modules have: the session, the connections and the jobs.

use std::path::PathBuf;

use super::bindings::sysadmin::module::{jobs, session, target_control};
use super::imports::GuestResult;
use super::limits::ExceededLimit;
use super::store::State;
use super::system_services::PublicKey;
use host_target::SshOptions;

fn missing() -> wasmtime::Error {
    ExceededLimit::NoImportsWhileDescribing.into()
}

impl session::Host for State {
    async fn snapshot(&mut self) -> wasmtime::Result<String> {
        let call = self.call()?;
        Ok(call.system_services.session.as_ref().ok_or_else(missing)?.snapshot().await)
    }

    async fn refresh(&mut self) -> wasmtime::Result<GuestResult<String>> {
        let call = self.call()?;
        let session = call.system_services.session.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(session.refresh().await))
    }

    async fn tools(&mut self) -> wasmtime::Result<Vec<session::ListedTool>> {
        let call = self.call()?;
        Ok(call.system_services.session.as_ref().ok_or_else(missing)?.tools())
    }

    async fn list_tools(&mut self, names: Vec<String>) -> wasmtime::Result<Vec<String>> {
        let call = self.call()?;
        Ok(call.system_services.session.as_ref().ok_or_else(missing)?.list_tools(names))
    }

    async fn sudoers_reference(&mut self, module: String) -> wasmtime::Result<Option<String>> {
        let call = self.call()?;
        Ok(call.system_services.session.as_ref().ok_or_else(missing)?.sudoers(module).await)
    }
}

fn given(given: target_control::Given) -> SshOptions {
    let target_control::Given { port, user, identity_file } = given;
    SshOptions { hostname: None, port, user, identity_file: identity_file.map(PathBuf::from) }
}

impl target_control::Host for State {
    async fn connect(
        &mut self,
        host: String,
        over: target_control::Given,
    ) -> wasmtime::Result<GuestResult<String>> {
        // A person may have to confirm, which may take long.
        let clock = self.clock.clone();
        let _still = clock.pause();
        let call = self.call()?;
        let connections = call.system_services.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.connect(host, given(over)).await))
    }

    async fn disconnect(&mut self, host: Option<String>) -> wasmtime::Result<GuestResult<String>> {
        let call = self.call()?;
        let connections = call.system_services.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.disconnect(host).await))
    }

    async fn is_host(&mut self, name: String) -> wasmtime::Result<bool> {
        let call = self.call()?;
        Ok(call.system_services.connections.as_ref().ok_or_else(missing)?.is_host(&name))
    }

    async fn connection(&mut self) -> wasmtime::Result<GuestResult<String>> {
        let call = self.call()?;
        let connections = call.system_services.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.connection().await))
    }

    async fn test(
        &mut self,
        host: String,
        over: target_control::Given,
    ) -> wasmtime::Result<GuestResult<String>> {
        let clock = self.clock.clone();
        let _still = clock.pause();
        let call = self.call()?;
        let connections = call.system_services.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.test(host, given(over)).await))
    }

    async fn public_keys(&mut self) -> wasmtime::Result<GuestResult<Vec<PublicKey>>> {
        let call = self.call()?;
        let connections = call.system_services.connections.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(connections.public_keys().await))
    }

    async fn keys_used(&mut self) -> wasmtime::Result<Vec<String>> {
        let call = self.call()?;
        Ok(call.system_services.connections.as_ref().ok_or_else(missing)?.keys_used())
    }

    async fn key_in_use(&mut self) -> wasmtime::Result<Option<String>> {
        let call = self.call()?;
        Ok(call.system_services.connections.as_ref().ok_or_else(missing)?.key_in_use().await)
    }
}

impl jobs::Host for State {
    async fn list(&mut self, agent_id: Option<String>) -> wasmtime::Result<String> {
        let call = self.call()?;
        Ok(call.system_services.jobs.as_ref().ok_or_else(missing)?.list(agent_id.as_deref()))
    }

    async fn output(
        &mut self,
        id: String,
        offset: u64,
        wait_seconds: u32,
    ) -> wasmtime::Result<GuestResult<String>> {
        let call = self.call()?;
        let jobs = call.system_services.jobs.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(jobs.output(id, offset, wait_seconds).await))
    }

    async fn cancel(&mut self, id: String, wait_seconds: u32) -> wasmtime::Result<GuestResult<String>> {
        let call = self.call()?;
        let jobs = call.system_services.jobs.as_ref().ok_or_else(missing)?;
        Ok(call.to_guest(jobs.cancel(id, wait_seconds).await))
    }
}
