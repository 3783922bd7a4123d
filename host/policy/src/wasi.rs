//! WASI, linked because ordinary toolchains import it, but denying everything.
//!
//! No files, no environment, no arguments, no network. Clocks stand still, random numbers are always the same, and
//! waiting takes no time, so a component cannot tell one run from another. What it prints goes to the log of the
//! decision. The interfaces are added one by one: those not in this list are not available.

mod cli;
mod clocks;
mod io;
mod random;
mod sockets;

use std::sync::{Arc, Mutex};

use wasmtime::{
    Result,
    component::{HasData, Linker, ResourceTable},
};
use wasmtime_wasi::{
    WasiCtxView, WasiView,
    cli::{WasiCli, WasiCliView},
    filesystem::{WasiFilesystem, WasiFilesystemView},
    p2::bindings::{
        cli as wasi_cli, clocks as wasi_clocks,
        filesystem::preopens,
        io::error,
        random as wasi_random, sockets as wasi_sockets,
        sync::{
            filesystem::types as filesystem_types,
            io::{poll, streams},
            sockets::{tcp, udp, udp_create_socket},
        },
    },
    sockets::{WasiSockets, WasiSocketsView},
};

use crate::{
    log::Log,
    prices,
    state::{Meter, State},
};

/// The interfaces that a component may import, all of version 0.2.
pub(crate) const PACKAGES: [&str; 6] =
    ["wasi:cli/", "wasi:clocks/", "wasi:filesystem/", "wasi:io/", "wasi:random/", "wasi:sockets/"];

/// For the crate's own implementations: exit, and the methods of resources that no component ever gets.
impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.note(prices::CALL);
        let wasi = self.wasi.get_or_insert_default();
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

/// Adds WASI to the linker.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> Result<()> {
    let l = linker;
    wasi_clocks::wall_clock::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_clocks::monotonic_clock::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_random::random::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_random::insecure::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_random::insecure_seed::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::exit::add_to_linker::<State, WasiCli>(l, State::cli)?;
    wasi_cli::environment::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::stdin::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::stdout::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::stderr::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::terminal_input::add_to_linker::<State, WasiCli>(l, State::cli)?;
    wasi_cli::terminal_output::add_to_linker::<State, WasiCli>(l, State::cli)?;
    wasi_cli::terminal_stdin::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::terminal_stdout::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_cli::terminal_stderr::add_to_linker::<State, HasImmediate>(l, immediate)?;
    preopens::add_to_linker::<State, HasImmediate>(l, immediate)?;
    filesystem_types::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    wasi_sockets::instance_network::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    wasi_sockets::network::add_to_linker::<State, HasImmediate>(
        l,
        &wasi_sockets::network::LinkOptions::default(),
        immediate,
    )?;
    wasi_sockets::ip_name_lookup::add_to_linker::<State, HasImmediate>(l, immediate)?;
    wasi_sockets::tcp_create_socket::add_to_linker::<State, HasImmediate>(l, immediate)?;
    tcp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    udp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    udp_create_socket::add_to_linker::<State, HasImmediate>(l, immediate)?;
    error::add_to_linker::<State, HasTable>(l, |state| state.ctx().table)?;
    poll::add_to_linker::<State, HasImmediate>(l, immediate)?;
    streams::add_to_linker::<State, HasImmediate>(l, immediate)
}

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Replaces those parts of the crate's WASI that do not suit us. Every call returns at once, always with the same
/// result, and costs fuel: every method first checks the [`Meter`], where the call itself has been noted already.
struct Immediate<'a> {
    table: &'a mut ResourceTable,
    meter: &'a mut Meter,
    log: &'a Arc<Mutex<Log>>,
}

struct HasImmediate;

impl HasData for HasImmediate {
    type Data<'a> = Immediate<'a>;
}

fn immediate(state: &mut State) -> Immediate<'_> {
    state.meter.note(prices::CALL);
    Immediate { table: &mut state.wasi.get_or_insert_default().table, meter: &mut state.meter, log: &state.log }
}
