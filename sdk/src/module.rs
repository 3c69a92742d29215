//! A module: a list of tools, its grants, and the targets that it serves.

use crate::bindings::exports::sysadmin::module::describe;
use crate::{AnyProgramGrant, CommandGrant, OwnProgramGrant, PathGrant, SignalGrant, Tool};

/// A module: everything that its component declares. Build it with its methods, and export it with [`crate::export!`].
pub struct Module {
    name: &'static str,
    version: &'static str,
    domain: &'static str,
    summary: &'static str,
    homepage: Option<&'static str>,
    license: Option<&'static str>,
    serves: Vec<describe::Condition>,
    commands: Vec<CommandGrant>,
    paths: Vec<PathGrant>,
    any_program: Vec<AnyProgramGrant>,
    signals: Vec<SignalGrant>,
    own_programs: Vec<OwnProgramGrant>,
    /// The names of the other modules' tools that it calls.
    called_tools: Vec<String>,
    /// Add grants. They are functions, because a module is built for every call and seldom needs its grants.
    grants: Vec<fn(Module) -> Module>,
    pub(crate) tools: Vec<Tool>,
}

impl Module {
    /// Makes a module without tools and grants. `version` is usually `env!("CARGO_PKG_VERSION")`; `domain` is the subject of
    /// the tools, such as `packages`.
    pub fn new(
        name: &'static str,
        version: &'static str,
        domain: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            version,
            domain,
            summary,
            homepage: None,
            license: None,
            serves: Vec::new(),
            commands: Vec::new(),
            paths: Vec::new(),
            any_program: Vec::new(),
            signals: Vec::new(),
            own_programs: Vec::new(),
            called_tools: Vec::new(),
            grants: Vec::new(),
            tools: Vec::new(),
        }
    }

    /// Sets the address of the module's own site.
    pub fn homepage(mut self, address: &'static str) -> Self {
        self.homepage = Some(address);
        self
    }

    /// Sets the license as an SPDX expression, usually `env!("CARGO_PKG_LICENSE")`.
    pub fn license(mut self, expression: &'static str) -> Self {
        self.license = Some(expression);
        self
    }

    /// Limits the module to targets whose `fact` (a field of [`crate::Distro`], such as `package_manager`) has one of the
    /// values.
    pub fn serves(mut self, fact: &str, any_of: &[&str]) -> Self {
        let any_of = any_of.iter().map(|value| value.to_string()).collect();
        self.serves.push(describe::Condition { fact: fact.to_owned(), any_of });
        self
    }

    /// Adds grants by a function, which runs only where the module is described. A call of a tool then takes no time for them.
    pub fn grants(mut self, add: fn(Module) -> Module) -> Self {
        self.grants.push(add);
        self
    }

    /// Requests a command line.
    pub fn command(mut self, grant: CommandGrant) -> Self {
        self.commands.push(grant);
        self
    }

    /// Requests several command lines.
    pub fn commands(mut self, grants: impl IntoIterator<Item = CommandGrant>) -> Self {
        self.commands.extend(grants);
        self
    }

    /// Requests files.
    pub fn path(mut self, grant: PathGrant) -> Self {
        self.paths.push(grant);
        self
    }

    /// Requests files by several grants.
    pub fn paths(mut self, grants: impl IntoIterator<Item = PathGrant>) -> Self {
        self.paths.extend(grants);
        self
    }

    /// Requests any program. The policy then decides which command lines look, which ones a person is asked about, and which
    /// are refused.
    pub fn any_program(mut self, grant: AnyProgramGrant) -> Self {
        self.any_program.push(grant);
        self
    }

    /// Requests signals to processes, as steps of plans.
    pub fn signals(mut self, grant: SignalGrant) -> Self {
        self.signals.push(grant);
        self
    }

    /// Requests a program of the module's own.
    pub fn own_program(mut self, grant: OwnProgramGrant) -> Self {
        self.own_programs.push(grant);
        self
    }

    /// Requests a read-only tool of another module, by its exact name, for [`crate::Context::call_tools`].
    pub fn calls_tool(mut self, tool: &str) -> Self {
        self.called_tools.push(tool.to_owned());
        self
    }

    /// Adds a tool.
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// The names of the other modules' tools that the module requests.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn requested_tools(&self) -> std::collections::BTreeSet<String> {
        self.called_tools.iter().cloned().chain(self.added().called_tools).collect()
    }

    /// The command lines that the module requests.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn requested_commands(&self) -> Vec<describe::CommandGrant> {
        let commands = self.commands.iter().cloned().chain(self.added().commands);
        commands.map(CommandGrant::into_request).collect()
    }

    /// A module that has only what the functions of `grants` add.
    #[cfg(not(target_family = "wasm"))]
    fn added(&self) -> Self {
        let empty = Self::new(self.name, self.version, self.domain, self.summary);
        self.grants.iter().fold(empty, |module, add| add(module))
    }

    /// The description of the module in the contract's form.
    pub fn description(mut self) -> describe::Description {
        for add in std::mem::take(&mut self.grants) {
            self = add(self);
        }
        describe::Description {
            name: self.name.to_owned(),
            version: self.version.to_owned(),
            summary: self.summary.to_owned(),
            homepage: self.homepage.map(str::to_owned),
            license: self.license.map(str::to_owned),
            domain: self.domain.to_owned(),
            serves: self.serves,
            tools: self.tools.iter().map(Tool::description).collect(),
            capabilities: describe::Capabilities {
                commands: self.commands.into_iter().map(CommandGrant::into_request).collect(),
                paths: self.paths.into_iter().map(PathGrant::into_request).collect(),
                tools: self.called_tools,
                any_program: self.any_program.into_iter().map(AnyProgramGrant::into_request).collect(),
                signals: self.signals.into_iter().map(SignalGrant::into_request).collect(),
                own_programs: self.own_programs.into_iter().map(OwnProgramGrant::into_request).collect(),
            },
            hints: self.tools.iter().filter_map(Tool::hint).collect(),
        }
    }
}
