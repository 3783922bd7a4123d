//! Checks the structure of a component before anything else processes it.
//!
//! It takes one pass over the file. A component that passes may still be too much for the compiler, which is why that
//! has limits; a component that fails never starts a process.

use thiserror::Error;
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentType,
    ComponentTypeDeclaration, ComponentTypeRef, CoreType, ModuleTypeDeclaration, Parser, Payload,
};

use super::CompileError;
use crate::{
    engine::{MAX_MEMORIES, MAX_TABLES},
    limits::StructureLimits,
};

/// The first bytes of component and instance types, the only ones that contain other component types.
const WITH_DECLARATIONS: [u8; 2] = [0x41, 0x42];
/// The first byte of a declaration, within one of those, of another component type.
const DECLARES_TYPE: u8 = 0x01;

/// A component has more of something than is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("has {count} {what}, more than the {limit} that are allowed")]
pub struct TooMuch {
    /// What it has too many of.
    pub what: &'static str,
    /// How many it has, as far as they were counted.
    pub count: u64,
    /// The limit.
    pub limit: u64,
    /// The gateway.json key of the limit; empty where the limit is the fixed size of the instance pool.
    pub setting: &'static str,
}

/// Counts the parts of a component.
///
/// # Errors
/// If it has too many of something, or is malformed.
pub(crate) fn check(bytes: &[u8], limits: &StructureLimits) -> Result<(), CompileError> {
    let mut count =
        Count { bytes, limits, functions: 0, types: 0, tables: 0, table_elements: 0, memories: 0, open: Vec::new() };
    for payload in Parser::new(0).parse_all(bytes) {
        count.payload(payload?)?;
    }
    Ok(())
}

struct Count<'a> {
    /// The whole file.
    bytes: &'a [u8],
    limits: &'a StructureLimits,
    functions: u64,
    types: u64,
    tables: u64,
    table_elements: u64,
    memories: u64,
    /// The modules and components being read, the innermost last.
    open: Vec<Part>,
}

/// A module or component.
#[derive(Default)]
struct Part {
    is_component: bool,
    /// How many instances are created by instantiating it.
    instances: u64,
    /// The same for each component in its index space.
    components: Vec<u64>,
}

impl Count<'_> {
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), CompileError> {
        match payload {
            Payload::Version { encoding, .. } => self.enter(encoding == wasmparser::Encoding::Component)?,
            Payload::End(_) => self.leave(),
            Payload::TypeSection(section) => {
                for group in section {
                    self.types(group?.types().len())?;
                }
            }
            Payload::CoreTypeSection(section) => {
                for core in section {
                    self.types(of_core(&core?))?;
                }
            }
            Payload::ComponentTypeSection(section) => {
                let range = section.range();
                let at = range.start;
                self.component_types(BinaryReader::new(self.bytes.get(range).unwrap_or_default(), at))?;
            }
            Payload::TableSection(section) => {
                for table in section {
                    self.table(table?.ty.initial)?;
                }
            }
            Payload::MemorySection(section) => {
                self.memories += u64::from(section.count());
                at_most("memories", self.memories, u64::from(MAX_MEMORIES), "")?;
            }
            Payload::FunctionSection(section) => self.functions(section.count())?,
            Payload::ComponentCanonicalSection(section) => self.functions(section.count())?,
            Payload::CodeSectionEntry(body) => self.body(&body)?,
            Payload::InstanceSection(section) => self.instances(u64::from(section.count()))?,
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    self.instance(&instance?)?;
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    self.alias(&alias?)?;
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    if let ComponentTypeRef::Component(_) = import?.ty {
                        return Err(higher_order());
                    }
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Component {
                        // An export adds another index for the component within.
                        let cost = self.component(0, export.index)?;
                        self.innermost()?.components.push(cost);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn enter(&mut self, is_component: bool) -> Result<(), CompileError> {
        self.open.push(Part { is_component, ..Part::default() });
        at_most("levels of components", self.open.len() as u64, self.limits.nesting, "policy.limits.nesting")
    }

    fn leave(&mut self) {
        let Some(part) = self.open.pop() else { return };
        if let (true, Some(outer)) = (part.is_component, self.open.last_mut()) {
            outer.components.push(part.instances);
        }
    }

    fn types(&mut self, more: usize) -> Result<(), CompileError> {
        self.types += more as u64;
        at_most("types", self.types, self.limits.types, "policy.limits.types")
    }

    /// Counts the types of a section without recursion: the parser calls itself for each level of types within types,
    /// of which a small file can contain more than a stack has room for.
    fn component_types(&mut self, mut section: BinaryReader<'_>) -> Result<(), CompileError> {
        // How many entries of the section, and of each type being read, are left; the innermost last.
        let mut open = vec![section.read_var_u32()?];
        while let Some(left) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            *left -= 1;
            if open.len() > 1 {
                if next_byte(&section)? != DECLARES_TYPE {
                    self.types(of_declared(&section.read::<ComponentTypeDeclaration<'_>>()?))?;
                    continue;
                }
                section.read_u8()?;
            }
            self.types(1)?;
            if WITH_DECLARATIONS.contains(&next_byte(&section)?) {
                at_most("levels of types", open.len() as u64, self.limits.nesting, "policy.limits.nesting")?;
                section.read_u8()?;
                open.push(section.read_var_u32()?);
            } else {
                section.read::<ComponentType<'_>>()?;
            }
        }
        Ok(())
    }

    fn table(&mut self, elements: u64) -> Result<(), CompileError> {
        self.tables += 1;
        at_most("tables", self.tables, u64::from(MAX_TABLES), "")?;
        self.table_elements = self.table_elements.saturating_add(elements);
        let setting = "policy.limits.tableElements";
        at_most("elements in its tables", self.table_elements, self.limits.table_elements, setting)
    }

    fn functions(&mut self, more: u32) -> Result<(), CompileError> {
        self.functions += u64::from(more);
        at_most("functions", self.functions, self.limits.functions, "policy.limits.functions")
    }

    fn body(&self, body: &wasmparser::FunctionBody<'_>) -> Result<(), CompileError> {
        let bytes = body.range().len() as u64;
        at_most("bytes of code in one function", bytes, self.limits.body_bytes, "policy.limits.functionKiB")?;
        let mut locals: u64 = 0;
        for group in body.get_locals_reader()? {
            locals += u64::from(group?.0);
        }
        at_most("local variables in one function", locals, self.limits.locals, "policy.limits.locals")
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), CompileError> {
        match instance {
            ComponentInstance::FromExports(_) => self.instances(1),
            ComponentInstance::Instantiate { component_index, args } => {
                if args.iter().any(|arg| arg.kind == ComponentExternalKind::Component) {
                    return Err(higher_order());
                }
                let made = self.component(0, *component_index)?;
                self.instances(made.saturating_add(1))
            }
        }
    }

    fn instances(&mut self, more: u64) -> Result<(), CompileError> {
        let limit = self.limits.instances;
        let part = self.innermost()?;
        part.instances = part.instances.saturating_add(more);
        at_most("instances", part.instances, limit, "policy.limits.instances")
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), CompileError> {
        match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => Err(higher_order()),
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                let cost = self.component(*count as usize, *index)?;
                self.innermost()?.components.push(cost);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// How many instances are created by instantiating the component with this index, `outwards` levels further out.
    fn component(&self, outwards: usize, index: u32) -> Result<u64, CompileError> {
        let part = self.open.iter().rev().nth(outwards);
        let cost = part.and_then(|part| part.components.get(index as usize));
        cost.copied().ok_or_else(|| invalid(format!("there is no component {index}")))
    }

    fn innermost(&mut self) -> Result<&mut Part, CompileError> {
        self.open.last_mut().ok_or_else(|| invalid("it has no header".to_owned()))
    }
}

/// How many types an entry declares, including those nested in it.
fn of_core(core: &CoreType<'_>) -> usize {
    match core {
        CoreType::Rec(group) => group.types().len(),
        CoreType::Module(declared) => declared.iter().map(of_module).sum::<usize>() + 1,
    }
}

fn of_module(declared: &ModuleTypeDeclaration<'_>) -> usize {
    match declared {
        ModuleTypeDeclaration::Type(group) => group.types().len(),
        _ => 1,
    }
}

fn of_declared(declared: &ComponentTypeDeclaration<'_>) -> usize {
    match declared {
        ComponentTypeDeclaration::CoreType(core) => of_core(core),
        _ => 1,
    }
}

fn next_byte(reader: &BinaryReader<'_>) -> Result<u8, CompileError> {
    Ok(reader.clone().read_u8()?)
}

fn at_most(what: &'static str, count: u64, limit: u64, setting: &'static str) -> Result<(), CompileError> {
    if count > limit { Err(CompileError::TooMuch(TooMuch { what, count, limit, setting })) } else { Ok(()) }
}

/// The number of instances that such a component creates cannot be determined before it is compiled.
fn higher_order() -> CompileError {
    invalid("it passes components to components, which no policy needs".to_owned())
}

fn invalid(reason: String) -> CompileError {
    CompileError::Invalid { reason }
}

impl From<wasmparser::BinaryReaderError> for CompileError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        invalid(crate::failure::foreign_line(&error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> String {
        let bytes = wat::parse_str(text).expect("a component");
        match check(&bytes, &StructureLimits::default()) {
            Ok(()) => "good".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Sibling components, each of which instantiates the previous one twice.
    fn doubling(levels: usize) -> String {
        let level = |level: usize| {
            let before = level - 1;
            format!(
                "(component $c{level} (alias outer 1 $c{before} (component $c)) (instance (instantiate $c)) \
                 (instance (instantiate $c)))"
            )
        };
        let siblings: String = (1..levels).map(level).collect();
        format!("(component (component $c0) {siblings} (instance (instantiate $c{})))", levels - 1)
    }

    /// Nested components.
    fn nested(levels: usize) -> String {
        format!("(component {} {})", "(component ".repeat(levels - 1), ")".repeat(levels - 1))
    }

    fn module(body: &str) -> String {
        format!("(component (core module {body}))")
    }

    #[test]
    fn instances_are_counted_as_they_would_be_made() {
        // The last of n levels creates 2^n - 2, and is itself created once.
        assert_eq!(checked(&doubling(7)), "good");
        assert_eq!(checked(&doubling(10)), "it has 1022 instances, more than the 1000 that are allowed");
        assert_eq!(checked(&doubling(40)), "it has 1022 instances, more than the 1000 that are allowed");
        let core = "(component $c (core module $m) ".to_owned() + &"(core instance (instantiate $m))".repeat(400) + ")";
        let each = "(instance (instantiate $c))";
        assert_eq!(checked(&format!("(component {core} {each} {each})")), "good");
        let thrice = checked(&format!("(component {core} {each} {each} {each})"));
        assert_eq!(thrice, "it has 1203 instances, more than the 1000 that are allowed");
    }

    #[test]
    fn a_component_that_is_exported_can_be_named_by_two_numbers() {
        let text = "(component (component $outer (component $a) (export $b \"b\" (component $a)) \
                    (instance (instantiate $b))) (instance (instantiate $outer)))";
        assert_eq!(checked(text), "good");
    }

    #[test]
    fn types_are_counted_wherever_they_are_declared() {
        let of = |count: usize| "(type (func))".repeat(count);
        let within = |count: usize| format!("(component (type (instance {})))", of(count));
        assert_eq!(checked(&within(19_000)), "good");
        for text in [
            format!("(component (core module (rec {})))", of(20_001)),
            format!("(component (core type (module {})))", of(20_001)),
            format!("(component (type (component (type (instance {})))))", of(20_001)),
            within(20_001),
        ] {
            assert!(checked(&text).contains("types, more than the 20000 that are allowed"), "{}", checked(&text));
        }
    }

    /// Instance or component types within each other; the innermost is missing unless it is `closed`.
    fn types_within_types(levels: u8, kind: u8, closed: bool) -> Vec<u8> {
        let mut section = vec![1_u8];
        section.extend([kind, 1, DECLARES_TYPE].repeat(usize::from(levels) - 1));
        if closed {
            section.extend([kind, 0]);
        }
        let mut component = b"\0asm\x0d\0\x01\0\x07".to_vec();
        component.push(u8::try_from(section.len()).expect("less than 128 bytes"));
        component.extend(section);
        component
    }

    #[test]
    fn types_within_types_are_not_read_deeper_than_allowed() {
        for kind in WITH_DECLARATIONS {
            let checked =
                |levels, closed| check(&types_within_types(levels, kind, closed), &StructureLimits::default());
            assert!(checked(32, true).is_ok());
            assert!(matches!(checked(32, false), Err(CompileError::Invalid { .. })));
            for closed in [true, false] {
                let error = checked(34, closed).expect_err("34 levels").to_string();
                assert_eq!(error, "it has 33 levels of types, more than the 32 that are allowed");
            }
        }
    }

    #[test]
    fn what_the_pool_has_no_room_for_is_not_compiled_for_it() {
        for (body, found) in [
            ("(table 50000 funcref)".repeat(2), "good"),
            (
                "(table 50001 funcref)".repeat(2),
                "it has 100002 elements in its tables, more than the 100000 that are allowed",
            ),
            ("(table 1 funcref)".repeat(17), "it has 17 tables, more than the 16 that are allowed"),
            ("(memory 1)".repeat(5), "it has 5 memories, more than the 4 that are allowed"),
        ] {
            assert_eq!(checked(&module(&body)), found);
        }
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        for text in [
            "(component (import \"c\" (component)))",
            "(component (component $f (component $a) (export \"a\" (component $a))) (instance $f (instantiate $f)) \
             (alias export $f \"a\" (component $c)))",
        ] {
            assert_eq!(checked(text), "it passes components to components, which no policy needs", "{text}");
        }
    }

    #[test]
    fn each_part_has_its_limit() {
        for (text, found) in [
            (nested(32), "good"),
            (nested(33), "it has 33 levels of components, more than the 32 that are allowed"),
            (module(&"(func)".repeat(1_000)), "good"),
            (module(&"(func)".repeat(100_001)), "it has 100001 functions, more than the 100000 that are allowed"),
            (
                module(
                    &(0..20_001).map(|n| format!("(type (func (param {})))", "i32 ".repeat(n % 9))).collect::<String>(),
                ),
                "it has 20001 types, more than the 20000 that are allowed",
            ),
            (module(&format!("(func (local {}))", "i32 ".repeat(10_000))), "good"),
            (
                module(&format!("(func (local {}))", "i32 ".repeat(10_001))),
                "it has 10001 local variables in one function, more than the 10000 that are allowed",
            ),
            (
                module(&format!("(func {})", "nop ".repeat(512 << 10))),
                "it has 524290 bytes of code in one function, more than the 524288 that are allowed",
            ),
        ] {
            assert_eq!(checked(&text), found);
        }
    }

    #[test]
    fn damage_is_an_error_or_left_to_the_compiler() {
        let whole = wat::parse_str(doubling(5)).expect("a component");
        for at in 0..whole.len() {
            // Neither panics, whatever the damage.
            _ = check(&whole[..at], &StructureLimits::default());
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                _ = check(&damaged, &StructureLimits::default());
            }
        }
        let last = whole.len() - 1;
        assert!(matches!(check(&whole[..last], &StructureLimits::default()), Err(CompileError::Invalid { .. })));
    }
}
