//! WASI, linked because ordinary toolchains import it, and denying everything.
//!
//! No files, no environment, no arguments, no network. Clocks stand still, random numbers are always
//! the same, and waiting takes no time, so a component cannot tell one run from another. What it prints goes to the
//! log of the decision. The interfaces are added one by one: what is not in this list is not there.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use wasmtime::{
    Result,
    component::{HasData, Linker, Resource, ResourceTable},
};
use wasmtime_wasi::{
    HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, async_trait,
    cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView},
    clocks::{WasiClocks, WasiClocksView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::{
        DynInputStream, DynOutputStream, DynPollable, Network, OutputStream, Pollable, SocketError, SocketResult,
        StreamError, StreamResult, UdpSocket,
        bindings::{
            cli, clocks, filesystem,
            io::error,
            random,
            sockets::{
                self,
                network::{ErrorCode, IpAddressFamily},
            },
            sync::{
                filesystem::types as filesystem_types,
                io::{poll, streams},
                sockets::{tcp, udp, udp_create_socket},
            },
        },
    },
    sockets::{WasiSockets, WasiSocketsView},
};

use crate::{
    host::cost,
    log::{Log, Stream},
    state::{Meter, State},
};

/// The interfaces a component may import, all of version 0.2.
pub(crate) const PACKAGES: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// Handles a component may hold at once.
const MAX_HANDLES: usize = 1_000;
/// Bytes of a random number that one call may ask for.
const MAX_RANDOM_BYTES: u64 = 64 << 10;
/// What every random number is made of.
const RANDOM: u64 = 0x9e37_79b9_7f4a_7c15;
/// Where clocks stand still: 2026-01-01T00:00:00Z.
const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// What WASI needs in a decision.
pub(crate) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl Wasi {
    fn new(log: &Arc<Mutex<Log>>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let ctx = WasiCtxBuilder::new()
            .stdout(Printer { log: log.clone(), stream: Stream::Stdout })
            .stderr(Printer { log: log.clone(), stream: Stream::Stderr })
            .wall_clock(StoppedClock)
            .monotonic_clock(StoppedClock)
            .build();
        Wasi { ctx, table }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(|| Box::new(Wasi::new(&self.log)));
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

/// Offers WASI to components.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    let l = linker;
    clocks::wall_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    random::random::add_to_linker::<State, HasImmediate>(l, immediate)?;
    random::insecure::add_to_linker::<State, HasImmediate>(l, immediate)?;
    random::insecure_seed::add_to_linker::<State, HasImmediate>(l, immediate)?;
    cli::exit::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::environment::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    filesystem_types::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    sockets::instance_network::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::network::add_to_linker::<State, WasiSockets>(
        l,
        &sockets::network::LinkOptions::default(),
        State::sockets,
    )?;
    sockets::ip_name_lookup::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    tcp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    udp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    udp_create_socket::add_to_linker::<State, HasImmediate>(l, immediate)?;
    error::add_to_linker::<State, HasTable>(l, |state| state.ctx().table)?;
    poll::add_to_linker::<State, HasImmediate>(l, immediate)?;
    streams::add_to_linker::<State, HasImmediate>(l, immediate)
}

/// Standard output or error, into the log. It takes everything and never makes the component wait or fail: what exceeds
/// the log's limit is dropped there.
#[derive(Clone)]
struct Printer {
    log: Arc<Mutex<Log>>,
    stream: Stream,
}

impl IsTerminal for Printer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printer {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only the bindings of WASI 0.3 ask for this one, and they are not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
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

/// A clock that always shows the same time.
struct StoppedClock;

impl HostWallClock for StoppedClock {
    fn resolution(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn now(&self) -> Duration {
        EPOCH
    }
}

impl HostMonotonicClock for StoppedClock {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// What the crate's own WASI does not do as we need it. Everything that could wait is answered at once: waiting would
/// hold a thread of the host for as long as a component likes, and the crate's blocking calls cannot run inside an
/// async runtime. Random numbers are always the same. And what grows with its arguments costs fuel.
struct Immediate<'a> {
    table: &'a mut ResourceTable,
    meter: &'a mut Meter,
}

struct HasImmediate;

impl HasData for HasImmediate {
    type Data<'a> = Immediate<'a>;
}

fn immediate(state: &mut State) -> Immediate<'_> {
    let wasi = state.wasi.get_or_insert_with(|| Box::new(Wasi::new(&state.log)));
    Immediate { table: &mut wasi.table, meter: &mut state.meter }
}

impl Immediate<'_> {
    fn random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.meter.charge(cost::CALL.saturating_add(cost::BYTE.saturating_mul(length)))?;
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
        Ok(RANDOM)
    }
}

impl random::insecure::Host for Immediate<'_> {
    fn get_insecure_random_bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.random_bytes(length)
    }

    fn get_insecure_random_u64(&mut self) -> Result<u64> {
        Ok(RANDOM)
    }
}

impl random::insecure_seed::Host for Immediate<'_> {
    fn insecure_seed(&mut self) -> Result<(u64, u64)> {
        Ok((RANDOM, RANDOM))
    }
}

impl poll::Host for Immediate<'_> {
    fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        Ok((0..pollables.len() as u32).collect())
    }
}

impl poll::HostPollable for Immediate<'_> {
    fn ready(&mut self, _: Resource<DynPollable>) -> Result<bool> {
        Ok(true)
    }

    fn block(&mut self, _: Resource<DynPollable>) -> Result<()> {
        Ok(())
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
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
        streams::HostOutputStream::check_write(self.table, stream)
    }

    fn write(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.meter.charge(cost::CALL + cost::BYTE * bytes.len() as u64).map_err(StreamError::Trap)?;
        self.table.get_mut(&stream)?.write(bytes.into())
    }

    fn blocking_write_and_flush(&mut self, stream: Resource<DynOutputStream>, bytes: Vec<u8>) -> StreamResult<()> {
        self.write(stream, bytes)
    }

    fn flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        self.table.get_mut(&stream)?.flush()
    }

    fn blocking_flush(&mut self, stream: Resource<DynOutputStream>) -> StreamResult<()> {
        self.flush(stream)
    }

    fn subscribe(&mut self, stream: Resource<DynOutputStream>) -> Result<Resource<DynPollable>> {
        streams::HostOutputStream::subscribe(self.table, stream)
    }

    fn write_zeroes(&mut self, _: Resource<DynOutputStream>, _: u64) -> StreamResult<()> {
        Ok(())
    }

    fn blocking_write_zeroes_and_flush(&mut self, _: Resource<DynOutputStream>, _: u64) -> StreamResult<()> {
        Ok(())
    }

    fn splice(&mut self, _: Resource<DynOutputStream>, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn blocking_splice(
        &mut self,
        _: Resource<DynOutputStream>,
        _: Resource<DynInputStream>,
        _: u64,
    ) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn drop(&mut self, stream: Resource<DynOutputStream>) -> Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

/// The only input there is: standard input, closed.
impl streams::HostInputStream for Immediate<'_> {
    fn read(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<Vec<u8>> {
        Err(StreamError::Closed)
    }

    fn blocking_read(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<Vec<u8>> {
        Err(StreamError::Closed)
    }

    fn skip(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn blocking_skip(&mut self, _: Resource<DynInputStream>, _: u64) -> StreamResult<u64> {
        Err(StreamError::Closed)
    }

    fn subscribe(&mut self, stream: Resource<DynInputStream>) -> Result<Resource<DynPollable>> {
        streams::HostInputStream::subscribe(self.table, stream)
    }

    fn drop(&mut self, stream: Resource<DynInputStream>) -> Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

/// No sockets: the crate refuses TCP by itself; for UDP it would start an async runtime first.
impl udp_create_socket::Host for Immediate<'_> {
    fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        Err(SocketError::from(ErrorCode::AccessDenied))
    }
}

impl sockets::network::Host for Immediate<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(&mut self, _: Resource<wasmtime::Error>) -> Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl sockets::network::HostNetwork for Immediate<'_> {
    fn drop(&mut self, network: Resource<Network>) -> Result<()> {
        self.table.delete(network)?;
        Ok(())
    }
}
