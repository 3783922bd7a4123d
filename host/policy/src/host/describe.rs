//! `description`: a component's self-description.

use wasmtime::component::Resource;

use crate::{
    contract::{bindings::pmk::policy::context::HostDescription, handle},
    description::{Draft, SettingKind},
    prices,
    state::{State, Task, no_such},
};

impl State {
    /// Returns the draft, after charging for the texts passed in a call.
    fn draft(&mut self, texts: &[&str]) -> wasmtime::Result<&mut Draft> {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        self.meter.charge(prices::CALL + prices::BYTE * bytes as u64)?;
        match &mut self.task {
            Task::Describe(draft) => Ok(draft),
            _ => Err(no_such("description")),
        }
    }
}

type Handle = Resource<handle::Description>;

impl HostDescription for State {
    fn name(&mut self, _: Handle, name: String) -> wasmtime::Result<()> {
        self.draft(&[&name])?.name(&name);
        Ok(())
    }

    fn version(&mut self, _: Handle, version: String) -> wasmtime::Result<()> {
        self.draft(&[&version])?.version(&version);
        Ok(())
    }

    fn about(&mut self, _: Handle, line: String) -> wasmtime::Result<()> {
        self.draft(&[&line])?.about(&line);
        Ok(())
    }

    fn setting_integer(
        &mut self,
        _: Handle,
        name: String,
        default: i64,
        min: i64,
        max: i64,
        help: String,
    ) -> wasmtime::Result<()> {
        self.draft(&[&name, &help])?.declare(&name, SettingKind::Integer { default, min, max }, &help);
        Ok(())
    }

    fn setting_boolean(&mut self, _: Handle, name: String, default: bool, help: String) -> wasmtime::Result<()> {
        self.draft(&[&name, &help])?.declare(&name, SettingKind::Boolean { default }, &help);
        Ok(())
    }

    fn setting_text(&mut self, _: Handle, name: String, default: String, help: String) -> wasmtime::Result<()> {
        self.draft(&[&name, &default, &help])?.declare_text(&name, &default, &help);
        Ok(())
    }

    fn drop(&mut self, _: Handle) -> wasmtime::Result<()> {
        Ok(())
    }
}
