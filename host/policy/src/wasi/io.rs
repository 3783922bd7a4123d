//! Streams and polling. Everything that could wait returns at once: waiting would block a host thread for as long as
//! the component likes.

use wasmtime::{Result, component::Resource};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, StreamError, StreamResult,
    bindings::sync::io::{poll, streams},
};

use super::Immediate;
use crate::prices;

impl Immediate<'_> {
    fn closed<T>(&self) -> StreamResult<T> {
        self.meter.check().map_err(StreamError::Trap)?;
        Err(StreamError::Closed)
    }
}

impl poll::Host for Immediate<'_> {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        self.meter.charge(prices::HANDLE * pollables.len() as u64)?;
        Ok((0..pollables.len() as u32).collect())
    }
}

impl poll::HostPollable for Immediate<'_> {
    fn ready(&mut self, _: Resource<DynPollable>) -> Result<bool> {
        self.meter.check()?;
        Ok(true)
    }

    fn block(&mut self, _: Resource<DynPollable>) -> Result<()> {
        self.meter.check()
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        self.meter.check()?;
        poll::HostPollable::drop(self.table, pollable)
    }
}

impl streams::Host for Immediate<'_> {
    fn convert_stream_error(&mut self, error: StreamError) -> Result<streams::StreamError> {
        streams::Host::convert_stream_error(self.table, error)
    }
}

impl streams::HostOutputStream for Immediate<'_> {
    fn check_write(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<u64> {
        self.meter.check().map_err(StreamError::Trap)?;
        streams::HostOutputStream::check_write(self.table, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.meter.charge(prices::BYTE * bytes.len() as u64).map_err(StreamError::Trap)?;
        self.table.get_mut(&stream)?.write(bytes.into())
    }

    fn blocking_write_and_flush(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.write(stream, bytes)
    }

    fn flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        self.meter.check().map_err(StreamError::Trap)?;
        self.table.get_mut(&stream)?.flush()
    }

    fn blocking_flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        self.flush(stream)
    }

    fn subscribe(&mut self, stream: Resource<DynOutputStream>) -> Result<Resource<DynPollable>> {
        self.meter.check()?;
        streams::HostOutputStream::subscribe(self.table, stream)
    }

    fn write_zeroes(&mut self, _: Resource<DynOutputStream>, _: u64) -> StreamResult<()> {
        self.meter.check().map_err(StreamError::Trap)
    }

    fn blocking_write_zeroes_and_flush(&mut self, _: Resource<DynOutputStream>, _: u64) -> StreamResult<()> {
        self.meter.check().map_err(StreamError::Trap)
    }

    fn splice(&mut self, _: Resource<DynOutputStream>, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        self.closed()
    }

    fn blocking_splice(
        &mut self,
        _: Resource<DynOutputStream>,
        _: Resource<DynInputStream>,
        _: u64,
    ) -> StreamResult<u64> {
        self.closed()
    }

    fn drop(&mut self, stream: Resource<DynOutputStream>) -> Result<()> {
        self.meter.check()?;
        self.table.delete(stream)?;
        Ok(())
    }
}

/// The only input there is: standard input, closed.
impl streams::HostInputStream for Immediate<'_> {
    fn read(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<Vec<u8>> {
        self.closed()
    }

    fn blocking_read(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<Vec<u8>> {
        self.closed()
    }

    fn skip(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        self.closed()
    }

    fn blocking_skip(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        self.closed()
    }

    fn subscribe(&mut self, stream: Resource<DynInputStream>) -> Result<Resource<DynPollable>> {
        self.meter.check()?;
        streams::HostInputStream::subscribe(self.table, stream)
    }

    fn drop(&mut self, stream: Resource<DynInputStream>) -> Result<()> {
        self.meter.check()?;
        self.table.delete(stream)?;
        Ok(())
    }
}
