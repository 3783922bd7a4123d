//! Loads a policy: file → checks → compilation in a child process → linking → memory images → self-description.

use std::{fmt, path::Path, sync::Arc};

use pmk_core::text::hex;
use serde::Serialize;
use sha2::{Digest, Sha256};
use wasmtime::{
    Store,
    component::{Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lower},
};

use crate::{
    capabilities::{self, Capability},
    checks::{self, Interfaces},
    compile::{Taken, structure},
    contract,
    decision::Identity,
    description::{Description, Draft},
    engine::first_line,
    error::LoadError,
    failure::Failure,
    images,
    instance::{self, Answer, CapParams, DescribeParams, PruneParams, RecoverParams, SummarizeParams},
    limits::Size,
    runtime::Runtime,
    settings::Settings,
    state::{State, Task},
};

/// A loaded policy, ready to decide.
pub struct Policy {
    runtime: Runtime,
    identity: Identity,
    description: Description,
    source: Arc<[u8]>,
    compiled: Option<Taken>,
    imports: Vec<String>,
    capabilities: Vec<Capability>,
    contract_version: String,
    pre: InstancePre<State>,
    functions: Functions,
}

/// Which decisions a policy makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exports {
    /// How much of a large message to keep.
    pub cap: bool,
    /// Which messages the model sees.
    pub prune: bool,
    /// What is carried over into a fresh session.
    pub summarize: bool,
    /// What to try after an overflow.
    pub recover: bool,
}

/// The indexes of a component's functions; looked up one by one, because it may have any subset.
pub(crate) struct Functions {
    pub cap: Option<ComponentExportIndex>,
    pub prune: Option<ComponentExportIndex>,
    pub summarize: Option<ComponentExportIndex>,
    pub recover: Option<ComponentExportIndex>,
}

impl Policy {
    /// Loads a component from a file.
    ///
    /// # Errors
    /// Any [`LoadError`].
    pub fn load(runtime: &Runtime, path: impl AsRef<Path>) -> Result<Policy, LoadError> {
        let path = path.as_ref();
        Policy::from_bytes(runtime, path.display().to_string(), &checks::read(path)?)
    }

    /// Loads a component from memory; `label` stands for the file name in errors.
    ///
    /// # Errors
    /// Any [`LoadError`] except those about files.
    pub fn from_bytes(runtime: &Runtime, label: impl Into<String>, bytes: &[u8]) -> Result<Policy, LoadError> {
        let label = label.into();
        let file = || label.clone();
        checks::header(&label, bytes)?;
        let sha256 = hex(&Sha256::digest(bytes));
        runtime.trust().admit(&label, &sha256)?;
        let (component, compiled) = structure::check(bytes, &runtime.limits().compile.structure)
            .and_then(|()| runtime.component(&sha256, bytes))
            .map_err(|error| LoadError::uncompiled(&label, error))?;
        let component_type = component.component_type();
        let Interfaces { imports, wants } = checks::interfaces(&label, runtime.engine(), &component_type)?;
        runtime.trust().admit_imports(&label, &imports)?;
        let describe =
            function(&label, &component, "describe")?.ok_or_else(|| LoadError::NoDescribe { file: file() })?;
        let functions = Functions {
            cap: function(&label, &component, "cap")?,
            prune: function(&label, &component, "prune")?,
            summarize: function(&label, &component, "summarize")?,
            recover: function(&label, &component, "recover")?,
        };
        let pre =
            runtime.linker().instantiate_pre(&component).map_err(|error| match checks::later(&imports, &error) {
                Some((wants, lacking)) => LoadError::LaterVersion { file: file(), wants, lacking },
                None => LoadError::Unlinkable { file: file(), reason: first_line(&error) },
            })?;
        images::lay_out(&component)
            .map_err(|error| LoadError::NoMemory { file: file(), reason: first_line(&error) })?;
        let description = describe_itself(runtime, &label, &pre, describe, &functions)?;
        Ok(Policy {
            runtime: runtime.clone(),
            identity: Identity { name: description.name.clone(), version: description.version.clone(), sha256 },
            description,
            source: bytes.into(),
            compiled,
            imports,
            capabilities: capabilities::of(runtime.engine(), &component_type),
            contract_version: wants,
            pre,
            functions,
        })
    }

    /// Name, version and SHA-256.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The name operators use.
    pub fn name(&self) -> &str {
        &self.identity.name
    }

    /// Its self-description.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The size of the component in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.source.len() as u64
    }

    /// The bytes of the component.
    pub fn source(&self) -> &Arc<[u8]> {
        &self.source
    }

    /// The resources that compiling it used; `None` if its artifact was in the cache.
    pub fn compiled(&self) -> Option<Taken> {
        self.compiled
    }

    /// Which decisions it makes.
    pub fn exports(&self) -> Exports {
        Exports {
            cap: self.functions.cap.is_some(),
            prune: self.functions.prune.is_some(),
            summarize: self.functions.summarize.is_some(),
            recover: self.functions.recover.is_some(),
        }
    }

    /// The interfaces it imports, with their versions.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Its capabilities: the functions it imports.
    pub fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    /// The version of the contract that it was built against; this host offers [`contract::VERSION`].
    pub fn contract_version(&self) -> &str {
        &self.contract_version
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn pre(&self) -> &InstancePre<State> {
        &self.pre
    }

    pub(crate) fn functions(&self) -> &Functions {
        &self.functions
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Finds the one function of an interface. Names match as versions do: a component that exports a later minor version
/// of the contract is found, too.
fn function(label: &str, component: &Component, name: &str) -> Result<Option<ComponentExportIndex>, LoadError> {
    let interface = contract::interface(name);
    let Some(instance) = component.get_export_index(None, &interface) else { return Ok(None) };
    match component.get_export_index(Some(&instance), name) {
        Some(index) => Ok(Some(index)),
        None => Err(LoadError::WrongExport {
            file: label.to_owned(),
            export: interface,
            reason: format!("it has no function `{name}`"),
        }),
    }
}

/// Runs the component for the first time: checks the types of all exports, then calls `describe`.
fn describe_itself(
    runtime: &Runtime,
    label: &str,
    pre: &InstancePre<State>,
    describe: ComponentExportIndex,
    functions: &Functions,
) -> Result<Description, LoadError> {
    let mut wrong_export = None;
    let limits = runtime.limits();
    let state = State::new(Task::Describe(Draft::default()), Settings::default(), limits, limits.fuel(Size::default()));
    let answer = instance::run(runtime, pre, state, |store, instance| {
        functions.check_types(store, instance).map_err(|(name, error)| {
            wrong_export = Some((name, first_line(&error)));
            error
        })?;
        let describe = instance::typed::<DescribeParams>(store, instance, describe).inspect_err(|error| {
            wrong_export = Some(("describe", first_line(error)));
        })?;
        describe.call(store, (instance::borrow(),))
    });
    if let Some((name, reason)) = wrong_export {
        return Err(LoadError::WrongExport { file: label.to_owned(), export: contract::interface(name), reason });
    }
    described(answer).map_err(|reason| match reason {
        Undescribed::Failed(failure) => LoadError::Describe { file: label.to_owned(), failure },
        Undescribed::Badly(reason) => LoadError::BadDescription { file: label.to_owned(), reason },
    })
}

enum Undescribed {
    Failed(Failure),
    Badly(String),
}

fn described(answer: Answer) -> Result<Description, Undescribed> {
    if let Some(failure) = answer.failure {
        return Err(Undescribed::Failed(failure));
    }
    match answer.task {
        Task::Describe(draft) => draft.finish().map_err(Undescribed::Badly),
        _ => Err(Undescribed::Badly("it was asked for something else".to_owned())),
    }
}

impl Functions {
    /// Compares the types of all exports with the contract's; the error names the first that differs.
    fn check_types(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
    ) -> Result<(), (&'static str, wasmtime::Error)> {
        check_type::<CapParams>(store, instance, self.cap).map_err(|error| ("cap", error))?;
        check_type::<PruneParams>(store, instance, self.prune).map_err(|error| ("prune", error))?;
        check_type::<SummarizeParams>(store, instance, self.summarize).map_err(|error| ("summarize", error))?;
        check_type::<RecoverParams>(store, instance, self.recover).map_err(|error| ("recover", error))
    }
}

fn check_type<P: ComponentNamedList + Lower>(
    store: &mut Store<State>,
    instance: &Instance,
    function: Option<ComponentExportIndex>,
) -> wasmtime::Result<()> {
    match function {
        Some(function) => instance::typed::<P>(store, instance, function).map(drop),
        None => Ok(()),
    }
}
