//! What components may import: the contract in each of its versions, and of WASI what has no sockets and no http.

use wasmtime::Engine;
use wasmtime::component::{HasSelf, Linker};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::filesystem::{WasiFilesystem, WasiFilesystemView};
use wasmtime_wasi::p2::bindings::{cli, filesystem, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};

use super::bindings::SystemModule;
use super::contract_0_1;
use super::store::State;

/// A linker for all modules.
pub(super) fn new(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    link_wasi(&mut linker)?;
    SystemModule::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    contract_0_1::link(&mut linker)?;
    Ok(linker)
}

/// Links WASI without sockets and http. A component that imports them can't start, because they are not in the linker.
fn link_wasi(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    // These are io, clocks, random and the three standard streams.
    wasmtime_wasi::p2::add_to_linker_proxy_interfaces_async(linker)?;
    random::insecure::add_to_linker::<_, WasiRandom>(linker, State::random)?;
    random::insecure_seed::add_to_linker::<_, WasiRandom>(linker, State::random)?;
    filesystem::preopens::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    filesystem::types::add_to_linker::<_, WasiFilesystem>(linker, State::filesystem)?;
    cli::exit::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::environment::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_input::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_output::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdin::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stdout::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    cli::terminal_stderr::add_to_linker::<_, WasiCli>(linker, State::cli)?;
    Ok(())
}
