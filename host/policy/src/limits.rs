//! Limits of a decision, and of compiling a component.

use std::time::Duration;

use pmk_core::Transcript;

/// Base fuel of a decision, before any is added for its messages. About a quarter of a second of computation; a policy
/// written in Rust needs less than a thousandth of it, one in JavaScript or Python a tenth.
pub const DEFAULT_FUEL_BASE: u64 = 250_000_000;

/// Fuel added for each message of the transcript; half of it for each message of the archive, which is only searched.
pub const DEFAULT_FUEL_PER_MESSAGE: u64 = 25_000;

/// Fuel added for each token of the transcript: several times the cost of reading all of its text.
pub const DEFAULT_FUEL_PER_TOKEN: u64 = 100;

/// The most fuel of a decision, whatever its size: more than a Python policy needs that reads 100,000 messages one by
/// one, and 0.7 s of host calls at their [`crate::prices`].
pub const DEFAULT_FUEL_MOST: u64 = 3_500_000_000;

/// Wall-clock time after which a decision is stopped although it has fuel left. Far above what the fuel takes on
/// a slow machine, because a decision stopped by the clock cannot be reproduced.
pub const DEFAULT_WALL: Duration = Duration::from_secs(5);

/// Linear memory of one instance, all its memories together. Enough for an interpreter of Python or JavaScript.
pub const DEFAULT_MEMORY_BYTES: usize = 128 << 20;

/// Elements of all tables of one instance together.
pub const DEFAULT_TABLE_ELEMENTS: usize = 100_000;

/// The most that an operator can allow: the pool has room for so many in each table.
pub const MOST_TABLE_ELEMENTS: usize = 1_000_000;

/// Bytes that the host may allocate for the arguments of one host call.
pub const DEFAULT_HOST_ALLOCATION_BYTES: usize = 4 << 20;

/// Log text that is kept of one decision, in bytes; the contract promises this many.
pub const DEFAULT_LOG_BYTES: usize = 8 << 10;

/// Processor time for compiling a component, all threads together. One that includes an interpreter takes 8 to 14 s.
pub const DEFAULT_COMPILE_CPU: Duration = Duration::from_secs(60);

/// Memory of the compiling process.
pub const DEFAULT_COMPILE_MEMORY_BYTES: u64 = 2 << 30;

/// The size of a compiled component. One that includes an interpreter has about 42 MB.
pub const DEFAULT_ARTIFACT_BYTES: u64 = 128 << 20;

/// Limits on compiling a component, and on its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileLimits {
    /// Default [`DEFAULT_COMPILE_CPU`]; whole seconds.
    pub cpu: Duration,
    /// Default [`DEFAULT_COMPILE_MEMORY_BYTES`].
    pub memory_bytes: u64,
    /// Default [`DEFAULT_ARTIFACT_BYTES`].
    pub artifact_bytes: u64,
    /// Checked before it is compiled.
    pub structure: StructureLimits,
}

impl CompileLimits {
    /// The default of every field.
    pub const DEFAULT: CompileLimits = CompileLimits {
        cpu: DEFAULT_COMPILE_CPU,
        memory_bytes: DEFAULT_COMPILE_MEMORY_BYTES,
        artifact_bytes: DEFAULT_ARTIFACT_BYTES,
        structure: StructureLimits::DEFAULT,
    };
}

impl Default for CompileLimits {
    fn default() -> Self {
        CompileLimits::DEFAULT
    }
}

/// Limits on the structure of a component. Components written in Rust have some hundred functions, those that include
/// an interpreter of Python or JavaScript twenty thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StructureLimits {
    /// Functions of all modules together.
    pub functions: u64,
    /// Types of all modules and components together.
    pub types: u64,
    /// The code of one function.
    pub body_bytes: u64,
    /// Local variables of one function.
    pub locals: u64,
    /// Instances created by instantiating the component.
    pub instances: u64,
    /// Initial elements of all tables: the compiled code contains each of them.
    pub table_elements: u64,
    /// How deeply components may be nested, and types. The engine's memory use is quadratic in it; toolchains produce
    /// two or three levels.
    pub nesting: u64,
}

impl StructureLimits {
    /// Several times the values of the largest known component.
    pub const DEFAULT: StructureLimits = StructureLimits {
        functions: 100_000,
        types: 20_000,
        body_bytes: 512 << 10,
        locals: 10_000,
        instances: 1_000,
        table_elements: DEFAULT_TABLE_ELEMENTS as u64,
        nesting: 32,
    };
}

impl Default for StructureLimits {
    fn default() -> Self {
        StructureLimits::DEFAULT
    }
}

/// Limits of one decision. Fuel determines whether a policy took too long, so that the answer is the same on every
/// machine; everything else is a safety limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Default [`DEFAULT_FUEL_BASE`].
    pub fuel_base: u64,
    /// Default [`DEFAULT_FUEL_PER_MESSAGE`].
    pub fuel_per_message: u64,
    /// Default [`DEFAULT_FUEL_PER_TOKEN`].
    pub fuel_per_token: u64,
    /// Default [`DEFAULT_FUEL_MOST`].
    pub fuel_most: u64,
    /// Default [`DEFAULT_WALL`].
    pub wall: Duration,
    /// Default [`DEFAULT_MEMORY_BYTES`].
    pub memory_bytes: usize,
    /// Default [`DEFAULT_TABLE_ELEMENTS`].
    pub table_elements: usize,
    /// Default [`DEFAULT_HOST_ALLOCATION_BYTES`].
    pub host_allocation_bytes: usize,
    /// Default [`DEFAULT_LOG_BYTES`].
    pub log_bytes: usize,
    /// Limits on compiling the component.
    pub compile: CompileLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            fuel_base: DEFAULT_FUEL_BASE,
            fuel_per_message: DEFAULT_FUEL_PER_MESSAGE,
            fuel_per_token: DEFAULT_FUEL_PER_TOKEN,
            fuel_most: DEFAULT_FUEL_MOST,
            wall: DEFAULT_WALL,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            table_elements: DEFAULT_TABLE_ELEMENTS,
            host_allocation_bytes: DEFAULT_HOST_ALLOCATION_BYTES,
            log_bytes: DEFAULT_LOG_BYTES,
            compile: CompileLimits::default(),
        }
    }
}

/// The size of a decision's input. Fuel grows with it. Memory does not: every concurrent decision has an instance, and
/// a conversation must not be able to raise their memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Messages of the window.
    pub messages: usize,
    /// Its tokens, by the host's estimate.
    pub tokens: u64,
    /// Messages of the archive that can be searched.
    pub archived: u32,
}

impl Size {
    /// The size of a decision about a conversation.
    pub fn of(transcript: &Transcript) -> Size {
        Size { messages: transcript.len(), tokens: transcript.total_tokens(), archived: transcript.archived() }
    }

    /// The size of a decision about one text: by its bytes, because counting tokens would cost more than most
    /// decisions.
    pub fn of_text(text: &str) -> Size {
        Size { messages: 1, tokens: text.len() as u64 / 4, archived: 0 }
    }

    /// The size of a decision that reads neither.
    pub const fn small() -> Size {
        Size { messages: 1, tokens: 0, archived: 0 }
    }
}

impl Limits {
    /// The fuel of a decision of this size. The base is granted even if it exceeds the maximum.
    pub fn fuel(&self, size: Size) -> u64 {
        let messages = (size.messages as u64).saturating_add(u64::from(size.archived) / 2);
        self.fuel_base
            .saturating_add(self.fuel_per_message.saturating_mul(messages))
            .saturating_add(self.fuel_per_token.saturating_mul(size.tokens))
            .min(self.fuel_most.max(self.fuel_base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: fuel grew with the number of messages without limit, so that for a long conversation only the wall
    /// clock ended a decision, every time.
    #[test]
    fn no_conversation_is_so_long_that_fuel_has_no_end() {
        let limits = Limits::default();
        let of = |messages, tokens, archived| limits.fuel(Size { messages, tokens, archived });
        assert_eq!(of(0, 0, 0), DEFAULT_FUEL_BASE);
        assert_eq!(of(1, 1, 2) - of(0, 0, 0), 2 * DEFAULT_FUEL_PER_MESSAGE + DEFAULT_FUEL_PER_TOKEN);
        assert_eq!(of(usize::MAX, u64::MAX, u32::MAX), DEFAULT_FUEL_MOST);
        let generous = Limits { fuel_base: u64::MAX, ..limits };
        assert_eq!(generous.fuel(Size::small()), u64::MAX, "what the operator gives for each decision it has");
    }
}
