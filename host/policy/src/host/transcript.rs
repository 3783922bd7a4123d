//! `transcript`: the request as it would be sent with an empty plan.

use pmk_core::{Block, Transcript, text};
use wasmtime::component::Resource;

use super::cut;
use crate::{
    contract::{bindings::pmk::policy::context::HostTranscript, handle},
    prices,
    state::State,
};

type Handle = Resource<handle::Transcript>;

impl State {
    /// Charges for a range of a column by the price of each element, and returns it.
    fn column<T>(
        &mut self,
        each: u64,
        start: u32,
        end: u32,
        make: impl FnOnce(&Transcript, std::ops::Range<usize>) -> Vec<T>,
    ) -> wasmtime::Result<Vec<T>> {
        let range = cut(start, end, self.transcript()?.len());
        self.meter.charge(prices::GIVE + each * range.len() as u64)?;
        Ok(make(self.transcript()?, range))
    }

    /// Charges for reading one number of the transcript.
    fn number(&mut self) -> wasmtime::Result<&Transcript> {
        self.meter.charge(prices::CALL)?;
        Ok(self.transcript()?)
    }
}

impl HostTranscript for State {
    fn length(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.len() as u32)
    }

    fn total_tokens(&mut self, _: Handle) -> wasmtime::Result<u64> {
        Ok(self.number()?.total_tokens())
    }

    fn tokens(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u32>> {
        self.column(prices::ELEMENT, start, end, |transcript, range| transcript.tokens()[range].to_vec())
    }

    fn chars(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u32>> {
        self.column(prices::LOOKED_UP, start, end, |transcript, range| {
            transcript.entries()[range].iter().map(|entry| entry.chars).collect()
        })
    }

    fn roles(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u8>> {
        self.column(prices::LOOKED_UP, start, end, |transcript, range| range.map(|at| transcript.codes(at).0).collect())
    }

    fn origins(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u8>> {
        self.column(prices::LOOKED_UP, start, end, |transcript, range| range.map(|at| transcript.codes(at).1).collect())
    }

    fn flags(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u8>> {
        self.column(prices::ELEMENT, start, end, |transcript, range| transcript.flags()[range].to_vec())
    }

    fn groups(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u32>> {
        self.column(prices::ELEMENT, start, end, |transcript, range| transcript.structure().groups[range].to_vec())
    }

    fn cuts(&mut self, _: Handle, before: u32, max: u32) -> wasmtime::Result<Vec<u32>> {
        let cuts: Vec<u32> = self.transcript()?.cuts_before(before).take(max as usize).collect();
        self.meter.charge(prices::GIVE + prices::ELEMENT * cuts.len() as u64)?;
        Ok(cuts)
    }

    fn turns(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.turns() as u32)
    }

    fn current(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.current() as u32)
    }

    fn seed_end(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.seed_end() as u32)
    }

    fn dropped_turns(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.dropped_turns())
    }

    fn channel(&mut self, _: Handle) -> wasmtime::Result<String> {
        let channel = self.transcript()?.channel().to_owned();
        self.meter.charge(prices::GIVE + prices::BYTE * channel.len() as u64)?;
        Ok(channel)
    }

    fn text(&mut self, _: Handle, index: u32, start: u32, max: u32) -> wasmtime::Result<String> {
        let transcript = self.transcript()?.clone();
        let Some(entry) = transcript.get(index) else {
            self.meter.charge(prices::GIVE)?;
            return Ok(String::new());
        };
        let contents = || entry.message.blocks.iter().filter_map(Block::content);
        let bytes: usize = contents().map(str::len).sum();
        self.meter.charge(prices::GIVE + prices::WALKED_BYTE * bytes as u64)?;
        let (start, max) = (start as usize, max as usize);
        let mut all = contents();
        let shown = match (all.next(), all.next()) {
            (Some(only), None) => text::slice(only, start, max).to_owned(),
            _ => text::slice(&entry.message.plain_text(), start, max).to_owned(),
        };
        self.meter.charge(prices::BYTE * shown.len() as u64)?;
        self.texts_read.note(index, &shown);
        Ok(shown)
    }

    fn tools(&mut self, _: Handle, index: u32) -> wasmtime::Result<Vec<String>> {
        let names: Vec<String> = match self.transcript()?.get(index) {
            Some(entry) => entry.message.blocks.iter().filter_map(tool_name).collect(),
            None => Vec::new(),
        };
        let bytes: usize = names.iter().map(String::len).sum();
        self.meter.charge(prices::GIVE * (1 + names.len() as u64) + prices::BYTE * bytes as u64)?;
        Ok(names)
    }

    fn archived(&mut self, _: Handle) -> wasmtime::Result<u32> {
        Ok(self.number()?.archived())
    }

    fn search(&mut self, _: Handle, query: String, max: u32) -> wasmtime::Result<Vec<u32>> {
        self.meter.charge(prices::WALKED_BYTE * query.len() as u64)?;
        self.look_up(|lookup, transcript, plan| lookup.search(transcript, plan, &query, max))
    }

    fn archived_tokens(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u32>> {
        self.look_up(|lookup, transcript, plan| lookup.tokens(transcript, plan, start, end))
    }

    fn archived_origins(&mut self, _: Handle, start: u32, end: u32) -> wasmtime::Result<Vec<u8>> {
        self.look_up(|lookup, transcript, _| lookup.origins(transcript, start, end))
    }

    fn archived_text(&mut self, _: Handle, number: u32, start: u32, max: u32) -> wasmtime::Result<String> {
        let shown = self.look_up(|lookup, transcript, _| lookup.text(transcript, number, start, max))?;
        self.meter.charge(prices::BYTE * shown.len() as u64)?;
        Ok(shown)
    }

    fn drop(&mut self, _: Handle) -> wasmtime::Result<()> {
        Ok(())
    }
}

fn tool_name(block: &Block) -> Option<String> {
    match block {
        Block::ToolUse { name, .. } => Some(name.clone()),
        _ => None,
    }
}
