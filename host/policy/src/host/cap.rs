//! `incoming` and `cap-verdict`: a large message, and how much of it to keep.

use pmk_core::{CapVerdict, text, tokens};
use wasmtime::component::Resource;

use crate::{
    contract::{
        bindings::pmk::policy::context::{HostCapVerdict, HostIncoming},
        handle,
    },
    input::IncomingInput,
    prices,
    state::{State, Task, TextSize, no_such},
};

type IncomingHandle = Resource<handle::Incoming>;
type VerdictHandle = Resource<handle::CapVerdict>;

impl State {
    fn incoming(&mut self) -> wasmtime::Result<(&IncomingInput, &mut TextSize)> {
        match &mut self.task {
            Task::Cap { incoming, size, .. } => Ok((incoming, size)),
            _ => Err(no_such("incoming")),
        }
    }

    fn set_verdict(&mut self, answer: CapVerdict) -> wasmtime::Result<()> {
        self.meter.charge(prices::CALL)?;
        match &mut self.task {
            Task::Cap { verdict, .. } => {
                *verdict = answer;
                Ok(())
            }
            _ => Err(no_such("cap-verdict")),
        }
    }
}

impl HostIncoming for State {
    fn kind(&mut self, _: IncomingHandle) -> wasmtime::Result<u8> {
        self.meter.charge(prices::CALL)?;
        Ok(self.incoming()?.0.kind.code())
    }

    fn name(&mut self, _: IncomingHandle) -> wasmtime::Result<String> {
        let name = self.incoming()?.0.name.clone();
        self.meter.charge(prices::GIVE + prices::BYTE * name.len() as u64)?;
        Ok(name)
    }

    fn chars(&mut self, _: IncomingHandle) -> wasmtime::Result<u32> {
        let bytes = self.incoming()?.0.text.len();
        self.meter.charge(prices::CALL + prices::WALKED_BYTE * bytes as u64)?;
        let (incoming, size) = self.incoming()?;
        let count = || u32::try_from(incoming.text.chars().count()).unwrap_or(u32::MAX);
        Ok(*size.chars.get_or_insert_with(count))
    }

    fn tokens(&mut self, _: IncomingHandle) -> wasmtime::Result<u32> {
        let bytes = self.incoming()?.0.text.len();
        self.meter.charge(prices::CALL + prices::COUNTED_BYTE * bytes as u64)?;
        let (incoming, size) = self.incoming()?;
        Ok(*size.tokens.get_or_insert_with(|| tokens::estimate(&incoming.text)))
    }

    fn limit(&mut self, _: IncomingHandle) -> wasmtime::Result<u64> {
        self.meter.charge(prices::CALL)?;
        Ok(self.incoming()?.0.limit)
    }

    fn text(&mut self, _: IncomingHandle, start: u32, max: u32) -> wasmtime::Result<String> {
        let bytes = self.incoming()?.0.text.len();
        self.meter.charge(prices::GIVE + prices::WALKED_BYTE * bytes as u64)?;
        let shown = text::slice(&self.incoming()?.0.text, start as usize, max as usize).to_owned();
        self.meter.charge(prices::BYTE * shown.len() as u64)?;
        self.texts_read.note(0, &shown);
        Ok(shown)
    }

    fn drop(&mut self, _: IncomingHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}

impl HostCapVerdict for State {
    fn keep(&mut self, _: VerdictHandle) -> wasmtime::Result<()> {
        self.set_verdict(CapVerdict::Keep)
    }

    fn shorten(&mut self, _: VerdictHandle, head: u32, tail: u32) -> wasmtime::Result<()> {
        self.set_verdict(CapVerdict::Shorten { head, tail })
    }

    fn digest(&mut self, _: VerdictHandle) -> wasmtime::Result<()> {
        self.set_verdict(CapVerdict::Digest)
    }

    fn drop(&mut self, _: VerdictHandle) -> wasmtime::Result<()> {
        Ok(())
    }
}
