//! The `policy` section of gateway.json: which components decide, which may be loaded, and the limits for decisions and
//! compiling.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use pmk_policy::{
    CompileLimits, ConfiguredSettings, Limits,
    limits::{self, StructureLimits},
};
use serde::Deserialize;

/// The policies that decide, and their settings.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// Component files, the top one last; `--policy` replaces the list. A relative path is relative to the home.
    pub files: Vec<PathBuf>,
    pub settings: ConfiguredSettings,
    /// Whether a policy may remove the seed pair (guard rule 3).
    pub seed_may_go: bool,
    /// SHA-256 digests of the components that may be loaded beside the embedded one; if absent, any may be.
    pub allow: Option<Vec<String>>,
    /// Whether components that import anything beyond the contract are refused.
    pub no_wasi: bool,
    /// The limits for decisions and compiling.
    pub limits: PolicyLimits,
}

/// The limits for decisions and compiling, in the units of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyLimits {
    pub fuel_base: u64,
    pub fuel_per_message: u64,
    pub fuel_per_token: u64,
    pub fuel_most: u64,
    pub wall_ms: u64,
    #[serde(rename = "memoryMiB")]
    pub memory_mib: u64,
    pub table_elements: u64,
    #[serde(rename = "hostAllocationKiB")]
    pub host_allocation_kib: u64,
    pub log_bytes: u64,
    pub compile_cpu_seconds: u64,
    #[serde(rename = "compileMemoryMiB")]
    pub compile_memory_mib: u64,
    #[serde(rename = "artifactMiB")]
    pub artifact_mib: u64,
    pub functions: u64,
    pub types: u64,
    #[serde(rename = "functionKiB")]
    pub function_kib: u64,
    pub locals: u64,
    pub instances: u64,
    pub nesting: u64,
}

impl Default for PolicyLimits {
    fn default() -> Self {
        let structure = StructureLimits::default();
        PolicyLimits {
            fuel_base: limits::DEFAULT_FUEL_BASE,
            fuel_per_message: limits::DEFAULT_FUEL_PER_MESSAGE,
            fuel_per_token: limits::DEFAULT_FUEL_PER_TOKEN,
            fuel_most: limits::DEFAULT_FUEL_MOST,
            wall_ms: limits::DEFAULT_WALL.as_millis() as u64,
            memory_mib: (limits::DEFAULT_MEMORY_BYTES >> 20) as u64,
            table_elements: limits::DEFAULT_TABLE_ELEMENTS as u64,
            host_allocation_kib: (limits::DEFAULT_HOST_ALLOCATION_BYTES >> 10) as u64,
            log_bytes: limits::DEFAULT_LOG_BYTES as u64,
            compile_cpu_seconds: limits::DEFAULT_COMPILE_CPU.as_secs(),
            compile_memory_mib: limits::DEFAULT_COMPILE_MEMORY_BYTES >> 20,
            artifact_mib: limits::DEFAULT_ARTIFACT_BYTES >> 20,
            functions: structure.functions,
            types: structure.types,
            function_kib: structure.body_bytes >> 10,
            locals: structure.locals,
            instances: structure.instances,
            nesting: structure.nesting,
        }
    }
}

/// One limit.
pub(super) struct Limit<'a> {
    pub name: &'static str,
    /// What it limits, in one line.
    pub about: &'static str,
    pub value: &'a mut u64,
    /// The allowed values: no policy works with less, and more would harm the gateway.
    pub range: RangeInclusive<u64>,
}

impl PolicyLimits {
    /// Returns each limit with its name in the file.
    pub(super) fn each(&mut self) -> [Limit<'_>; 18] {
        let limit = |name, value, range, about| Limit { name, about, value, range };
        [
            limit("fuelBase", &mut self.fuel_base, 1_000_000..=100_000_000_000, "Fuel a decision has in any case."),
            limit("fuelPerMessage", &mut self.fuel_per_message, 0..=10_000_000, "Fuel that comes with each message."),
            limit("fuelPerToken", &mut self.fuel_per_token, 0..=1_000_000, "Fuel that comes with each token."),
            limit("fuelMost", &mut self.fuel_most, 1_000_000..=100_000_000_000, "Fuel a decision has at most."),
            limit("wallMs", &mut self.wall_ms, 100..=600_000, "The wall clock, which only rescues."),
            limit("memoryMiB", &mut self.memory_mib, 2..=4_096, "Memory of the component."),
            limit("tableElements", &mut self.table_elements, 1_000..=limits::MOST_TABLE_ELEMENTS as u64, "Its tables."),
            limit(
                "hostAllocationKiB",
                &mut self.host_allocation_kib,
                64..=65_536,
                "What it can make the host allocate.",
            ),
            // The contract guarantees at least the default.
            limit("logBytes", &mut self.log_bytes, limits::DEFAULT_LOG_BYTES as u64..=1 << 20, "What it may log."),
            limit("compileCpuSeconds", &mut self.compile_cpu_seconds, 1..=3_600, "Processor time to compile it."),
            // The program itself needs at least this much.
            limit("compileMemoryMiB", &mut self.compile_memory_mib, 64..=65_536, "Memory to compile it."),
            limit("artifactMiB", &mut self.artifact_mib, 1..=4_096, "Compiled code."),
            limit("functions", &mut self.functions, 1_000..=10_000_000, "Its functions."),
            limit("types", &mut self.types, 1_000..=1_000_000, "Its types."),
            limit("functionKiB", &mut self.function_kib, 16..=65_536, "One function."),
            limit("locals", &mut self.locals, 100..=50_000, "Variables of one function."),
            limit("instances", &mut self.instances, 16..=10_000, "Instances that making one instance of it makes."),
            // The depth that the engine handles in acceptable time and memory.
            limit("nesting", &mut self.nesting, 4..=100, "Components within components, and types within types."),
        ]
    }

    /// Converts the limits for the runtime.
    pub fn limits(&self) -> Limits {
        let bytes = |count: u64, shift: u32| usize::try_from(count << shift).unwrap_or(usize::MAX);
        Limits {
            fuel_base: self.fuel_base,
            fuel_per_message: self.fuel_per_message,
            fuel_per_token: self.fuel_per_token,
            fuel_most: self.fuel_most,
            wall: Duration::from_millis(self.wall_ms),
            memory_bytes: bytes(self.memory_mib, 20),
            table_elements: bytes(self.table_elements, 0),
            host_allocation_bytes: bytes(self.host_allocation_kib, 10),
            log_bytes: bytes(self.log_bytes, 0),
            compile: CompileLimits {
                cpu: Duration::from_secs(self.compile_cpu_seconds),
                memory_bytes: self.compile_memory_mib << 20,
                artifact_bytes: self.artifact_mib << 20,
                structure: StructureLimits {
                    functions: self.functions,
                    types: self.types,
                    body_bytes: self.function_kib << 10,
                    locals: self.locals,
                    instances: self.instances,
                    table_elements: self.table_elements,
                    nesting: self.nesting,
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PolicyConfig, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn without_a_word_the_limits_are_the_runtimes_own() {
        assert_eq!(read("{}").expect("all defaults").limits.limits(), Limits::default());
    }

    #[test]
    fn each_limit_can_be_set() {
        let text = r#"{"limits":{"fuelBase":1000000,"fuelPerMessage":2,"fuelPerToken":3,"fuelMost":4000000,"wallMs":400,"memoryMiB":5,
                       "tableElements":6000,"hostAllocationKiB":70,"logBytes":8192,"compileCpuSeconds":9,"compileMemoryMiB":100,
                       "artifactMiB":11,"functions":1200,"types":1300,"functionKiB":20,"locals":150,"instances":16,
                       "nesting":17}}"#;
        let limits = read(text).expect("a configuration").limits.limits();
        let expected = Limits {
            fuel_base: 1_000_000,
            fuel_per_message: 2,
            fuel_per_token: 3,
            fuel_most: 4_000_000,
            wall: Duration::from_millis(400),
            memory_bytes: 5 << 20,
            table_elements: 6_000,
            host_allocation_bytes: 70 << 10,
            log_bytes: 8 << 10,
            compile: CompileLimits {
                cpu: Duration::from_secs(9),
                memory_bytes: 100 << 20,
                artifact_bytes: 11 << 20,
                structure: StructureLimits {
                    functions: 1_200,
                    types: 1_300,
                    body_bytes: 20 << 10,
                    locals: 150,
                    instances: 16,
                    table_elements: 6_000,
                    nesting: 17,
                },
            },
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn the_reference_has_every_limit_with_what_makes_sense() {
        let page = include_str!("../../../../docs/settings.md");
        let (_, rest) = page
            .split_once("| `policy.limits` | default | from | to | of |\n|---|---|---|---|---|\n")
            .expect("a table");
        let told: Vec<Vec<String>> = rest
            .lines()
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.split('|').skip(1).take(4).map(|cell| cell.replace([' ', '`', ','], "")).collect())
            .collect();
        let there: Vec<Vec<String>> = PolicyLimits::default()
            .each()
            .map(|Limit { name, value, range, .. }| {
                vec![name.to_owned(), value.to_string(), range.start().to_string(), range.end().to_string()]
            })
            .into();
        assert_eq!(told, there);
    }
}
