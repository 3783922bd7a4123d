//! A program's environment: no variables, no arguments, no folders, no terminal; what is printed goes to the log.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use wasmtime::{Result, component::Resource};
use wasmtime_wasi::{
    async_trait,
    p2::{
        DynInputStream, DynOutputStream, OutputStream, Pollable, StreamResult,
        bindings::{
            cli::{
                environment, stderr, stdin, stdout, terminal_input::TerminalInput, terminal_output::TerminalOutput,
                terminal_stderr, terminal_stdin, terminal_stdout,
            },
            filesystem::{preopens, types::Descriptor},
        },
        pipe::ClosedInputStream,
    },
};

use super::Immediate;
use crate::log::{Log, Stream};

impl environment::Host for Immediate<'_> {
    fn get_environment(&mut self) -> Result<Vec<(String, String)>> {
        self.meter.check()?;
        Ok(vec![])
    }

    fn get_arguments(&mut self) -> Result<Vec<String>> {
        self.meter.check()?;
        Ok(vec![])
    }

    fn initial_cwd(&mut self) -> Result<Option<String>> {
        self.meter.check()?;
        Ok(None)
    }
}

impl preopens::Host for Immediate<'_> {
    fn get_directories(&mut self) -> Result<Vec<(Resource<Descriptor>, String)>> {
        self.meter.check()?;
        Ok(vec![])
    }
}

impl stdin::Host for Immediate<'_> {
    fn get_stdin(&mut self) -> Result<Resource<DynInputStream>> {
        self.meter.check()?;
        let input: DynInputStream = Box::new(ClosedInputStream);
        Ok(self.table.push(input)?)
    }
}

impl stdout::Host for Immediate<'_> {
    fn get_stdout(&mut self) -> Result<Resource<DynOutputStream>> {
        self.printer(Stream::Stdout)
    }
}

impl stderr::Host for Immediate<'_> {
    fn get_stderr(&mut self) -> Result<Resource<DynOutputStream>> {
        self.printer(Stream::Stderr)
    }
}

impl terminal_stdin::Host for Immediate<'_> {
    fn get_terminal_stdin(&mut self) -> Result<Option<Resource<TerminalInput>>> {
        self.meter.check()?;
        Ok(None)
    }
}

impl terminal_stdout::Host for Immediate<'_> {
    fn get_terminal_stdout(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        self.meter.check()?;
        Ok(None)
    }
}

impl terminal_stderr::Host for Immediate<'_> {
    fn get_terminal_stderr(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        self.meter.check()?;
        Ok(None)
    }
}

impl Immediate<'_> {
    fn printer(&mut self, stream: Stream) -> Result<Resource<DynOutputStream>> {
        self.meter.check()?;
        let output: DynOutputStream = Box::new(Printer { log: Arc::clone(self.log), stream });
        Ok(self.table.push(output)?)
    }
}

/// Standard output or error, written to the log. It accepts everything and never makes the component wait or fail: what
/// exceeds the log's limit is dropped there.
struct Printer {
    log: Arc<Mutex<Log>>,
    stream: Stream,
}

#[async_trait]
impl Pollable for Printer {
    async fn ready(&mut self) {}
}

impl OutputStream for Printer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).print(self.stream, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(64 << 10)
    }
}
