//! `host`: logging and settings.

use crate::{contract::bindings::pmk::policy::host::Host, log::LogLevel, prices, settings::Value, state::State};

impl State {
    /// Returns the value of a setting. The name is copied and looked up before it is known to exist, so it is charged
    /// first.
    fn setting(&mut self, name: &str) -> wasmtime::Result<Option<&Value>> {
        self.meter.charge(prices::CALL + prices::BYTE * name.len() as u64)?;
        let value = self.settings.get(name);
        if let Some(Value::Text(text)) = value {
            self.meter.charge(prices::BYTE * text.len() as u64)?;
        }
        Ok(value)
    }
}

impl Host for State {
    fn log(&mut self, level: u8, message: String) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL + prices::BYTE * message.len() as u64)?;
        self.with_log(|log| log.line(LogLevel::of_code(level), &message));
        Ok(())
    }

    fn setting_integer(&mut self, name: String) -> wasmtime::Result<Option<i64>> {
        Ok(match self.setting(&name)? {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        })
    }

    fn setting_boolean(&mut self, name: String) -> wasmtime::Result<Option<bool>> {
        Ok(match self.setting(&name)? {
            Some(Value::Boolean(value)) => Some(*value),
            _ => None,
        })
    }

    fn setting_text(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        self.meter.charge(prices::GIVE - prices::CALL)?;
        Ok(match self.setting(&name)? {
            Some(Value::Text(value)) => Some(value.clone()),
            _ => None,
        })
    }
}
