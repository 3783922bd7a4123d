//! Converts a core module to a component, and reads what a component contains.

use wit_component::{ComponentEncoder, DecodedWasm};

use crate::Error;

/// The package whose interfaces a policy exports.
const CONTRACT: &str = "pmk:policy/";

/// The header of every component; a core module has another version.
const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

/// The one export that every policy must have.
const REQUIRED: &str = "describe";

/// A policy component and what it exports.
#[derive(Clone, Debug)]
pub struct Component {
    /// The component itself.
    pub bytes: Vec<u8>,
    /// Names of the contract's interfaces that it exports, sorted.
    pub exports: Vec<String>,
    /// Full names of the interfaces that it imports, sorted.
    pub imports: Vec<String>,
}

impl Component {
    /// Wraps a core module that contains its component type.
    ///
    /// # Errors
    /// If the module's component type is missing or does not match.
    pub fn of_module(name: &str, module: &[u8]) -> Result<Component, Error> {
        let bytes = ComponentEncoder::default()
            .validate(true)
            .module(module)
            .and_then(|mut encoder| encoder.encode())
            .map_err(|error| Error::Component { name: name.into(), what: format!("{error:#}") })?;
        Component::read(name, bytes)
    }

    /// Reads a component's imports and exports.
    ///
    /// # Errors
    /// If the bytes are not a component, or the component has no self-description.
    pub fn read(name: &str, bytes: Vec<u8>) -> Result<Component, Error> {
        let wrong = |what: String| Error::Component { name: name.into(), what };
        if !bytes.starts_with(HEADER) {
            return Err(wrong("it is not a component".into()));
        }
        let (resolve, world) = match wit_component::decode(&bytes) {
            Ok(DecodedWasm::Component(resolve, world)) => (resolve, world),
            Ok(DecodedWasm::WitPackage(..)) => return Err(wrong("it is a WIT package, not a component".into())),
            Err(error) => return Err(wrong(format!("it is not a component: {error:#}"))),
        };
        let world = &resolve.worlds[world];
        let mut imports: Vec<String> = world.imports.keys().map(|key| resolve.name_world_key(key)).collect();
        imports.sort();
        let mut exports: Vec<String> = world
            .exports
            .keys()
            .filter_map(|key| {
                let full = resolve.name_world_key(key);
                let name = full.strip_prefix(CONTRACT)?;
                Some(name.split('@').next().unwrap_or(name).to_owned())
            })
            .collect();
        exports.sort();
        if !exports.iter().any(|export| export == REQUIRED) {
            return Err(wrong(format!("it does not export `{CONTRACT}{REQUIRED}`, so it is no policy")));
        }
        Ok(Component { bytes, exports, imports })
    }
}
