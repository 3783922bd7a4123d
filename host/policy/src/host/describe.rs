//! `description`: what a component says of itself.

use wasmtime::component::Resource;

use super::cost;
use crate::{
    contract::{bindings::pmk::policy::context::HostDescription, handle},
    description::{Draft, SettingKind},
    state::{State, Task, no_such},
};

impl State {
    fn draft(&mut self) -> wasmtime::Result<&mut Draft> {
        self.meter.charge(cost::CALL)?;
        match &mut self.task {
            Task::Describe(draft) => Ok(draft),
            _ => Err(no_such("description")),
        }
    }
}

type Handle = Resource<handle::Description>;

impl HostDescription for State {
    fn name(&mut self, _: Handle, name: String) -> wasmtime::Result<()> {
        self.draft()?.name = Some(name);
        Ok(())
    }

    fn version(&mut self, _: Handle, version: String) -> wasmtime::Result<()> {
        self.draft()?.version = version;
        Ok(())
    }

    fn about(&mut self, _: Handle, line: String) -> wasmtime::Result<()> {
        self.draft()?.about = line;
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
        self.draft()?.declare(name, SettingKind::Integer { default, min, max }, &help);
        Ok(())
    }

    fn setting_boolean(&mut self, _: Handle, name: String, default: bool, help: String) -> wasmtime::Result<()> {
        self.draft()?.declare(name, SettingKind::Boolean { default }, &help);
        Ok(())
    }

    fn setting_text(&mut self, _: Handle, name: String, default: String, help: String) -> wasmtime::Result<()> {
        self.draft()?.declare(name, SettingKind::Text { default }, &help);
        Ok(())
    }

    fn drop(&mut self, _: Handle) -> wasmtime::Result<()> {
        Ok(())
    }
}
