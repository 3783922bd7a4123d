//! `host`: logging and settings.

use super::cost;
use crate::{contract::bindings::pmk::policy::host::Host, record::LogLevel, settings::Value, state::State};

impl Host for State {
    fn log(&mut self, level: u8, message: String) -> wasmtime::Result<()> {
        self.meter.charge(cost::CALL + cost::BYTE * message.len() as u64)?;
        self.with_log(|log| log.line(LogLevel::of_code(level), &message));
        Ok(())
    }

    fn setting_integer(&mut self, name: String) -> wasmtime::Result<Option<i64>> {
        self.meter.charge(cost::CALL)?;
        Ok(match self.settings.get(&name) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        })
    }

    fn setting_boolean(&mut self, name: String) -> wasmtime::Result<Option<bool>> {
        self.meter.charge(cost::CALL)?;
        Ok(match self.settings.get(&name) {
            Some(Value::Boolean(value)) => Some(*value),
            _ => None,
        })
    }

    fn setting_text(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        self.meter.charge(cost::CALL)?;
        Ok(match self.settings.get(&name) {
            Some(Value::Text(value)) => Some(value.clone()),
            _ => None,
        })
    }
}
