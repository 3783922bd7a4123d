//! Random numbers, which are always the same.

use wasmtime::Result;
use wasmtime_wasi::p2::bindings::random;

use super::Immediate;
use crate::prices;

/// The most random bytes per call.
const MAX_RANDOM_BYTES: u64 = 64 << 10;
/// The value of every random number.
const RANDOM: u64 = 0x9e37_79b9_7f4a_7c15;

impl Immediate<'_> {
    fn random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.meter.charge(prices::BYTE.saturating_mul(length))?;
        if length > MAX_RANDOM_BYTES {
            return Err(wasmtime::Error::msg(format!("asked for {length} random bytes at once")));
        }
        Ok(RANDOM.to_le_bytes().into_iter().cycle().take(length as usize).collect())
    }
}

impl random::random::Host for Immediate<'_> {
    fn get_random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.random_bytes(length)
    }

    fn get_random_u64(&mut self) -> Result<u64> {
        self.meter.check()?;
        Ok(RANDOM)
    }
}

impl random::insecure::Host for Immediate<'_> {
    fn get_insecure_random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.random_bytes(length)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        self.meter.check()?;
        Ok(RANDOM)
    }
}

impl random::insecure_seed::Host for Immediate<'_> {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        self.meter.check()?;
        Ok((RANDOM, RANDOM))
    }
}
