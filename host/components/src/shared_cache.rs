//! Compiles the modules for all accounts of the machine, where the program is installed for all of them. Otherwise each
//! account would compile them at its first start, which takes seconds.

use std::path::Path;
use std::sync::Arc;

use super::cache::{Cache, SHARED};
use super::config::Modules;
use super::install::InstallError;
use super::module::Loader;
use super::registry::{CompileMode, Registry};
use super::source::ModuleDirectories;

/// The result of [`compile_for_everyone`].
#[derive(Debug)]
pub struct CompiledForEveryone {
    /// The directory of the compiled code.
    pub directory: &'static Path,
    /// The number of modules whose code is there.
    pub modules: usize,
    /// The modules that could not be compiled, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// The directory with the code that [`compile_for_everyone`] has compiled.
pub fn shared_cache() -> &'static Path {
    Path::new(SHARED)
}

/// Compiles the modules that come with the program, and those that root added for everyone, for this processor. It takes root,
/// since every account runs the code. The configuration of root's own account doesn't count, because it holds for no other.
pub async fn compile_for_everyone(places: ModuleDirectories) -> Result<CompiledForEveryone, InstallError> {
    if !rustix::process::geteuid().is_root() {
        return Err(InstallError::System);
    }
    let directory = shared_cache();
    let cache = Cache::for_everyone(directory)
        .map_err(|source| InstallError::Shared { directory: directory.to_owned(), source })?;
    compile_into(directory, cache, ModuleDirectories { user: None, ..places }).await
}

async fn compile_into(
    directory: &'static Path,
    cache: Cache,
    places: ModuleDirectories,
) -> Result<CompiledForEveryone, InstallError> {
    let config = Modules::default();
    let loader = Arc::new(Loader::with_cache(&config, cache));
    let registry = Registry::with(loader, &places, &config, CompileMode::Now).await;
    let unused = registry.unused_modules().iter().filter(|unused| !unused.disabled);
    let mut failed: Vec<_> = unused.map(|unused| (unused.name.clone(), unused.reason.clone())).collect();
    let mut modules = 0;
    for module in registry.modules() {
        // The grants need the code, which is compiled then.
        match module.grants().await {
            Ok(_) => modules += 1,
            Err(problem) => failed.push((module.description.name.clone(), problem.message)),
        }
    }
    Ok(CompiledForEveryone { directory, modules, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_compiled_where_there_are_no_modules() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::for_everyone(&directory.path().join("shared")).unwrap();
        let places = ModuleDirectories {
            host: Some(directory.path().join("none")),
            system: directory.path().join("none"),
            user: None,
        };
        let compiled = compile_into(shared_cache(), cache, places).await.unwrap();
        assert_eq!((compiled.modules, compiled.failed.len()), (0, 0), "{compiled:?}");
    }
}
