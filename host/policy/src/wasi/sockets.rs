//! No sockets and no name resolution. The crate denies them as well, but without charging for it, and for some of them
//! it would first start an async runtime.

use wasmtime::{Result, component::Resource};
use wasmtime_wasi::p2::{
    DynPollable, Network, SocketError, SocketResult, TcpSocket, UdpSocket,
    bindings::sockets::{
        ip_name_lookup::{self, ResolveAddressStream},
        network::{self, ErrorCode, IpAddress, IpAddressFamily},
        tcp_create_socket,
    },
    bindings::sync::sockets::udp_create_socket,
    subscribe,
};

use super::Immediate;
use crate::prices;

impl tcp_create_socket::Host for Immediate<'_> {
    fn create_tcp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<TcpSocket>> {
        self.meter.check().map_err(SocketError::trap)?;
        Err(SocketError::from(ErrorCode::AccessDenied))
    }
}

impl udp_create_socket::Host for Immediate<'_> {
    fn create_udp_socket(&mut self, _: IpAddressFamily) -> SocketResult<Resource<UdpSocket>> {
        self.meter.check().map_err(SocketError::trap)?;
        Err(SocketError::from(ErrorCode::AccessDenied))
    }
}

impl ip_name_lookup::Host for Immediate<'_> {
    fn resolve_addresses(
        &mut self,
        _: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        self.meter.charge(prices::BYTE * name.len() as u64).map_err(SocketError::trap)?;
        Err(SocketError::from(ErrorCode::PermanentResolverFailure))
    }
}

/// There is never such a stream.
impl ip_name_lookup::HostResolveAddressStream for Immediate<'_> {
    fn resolve_next_address(&mut self, _: Resource<ResolveAddressStream>) -> SocketResult<Option<IpAddress>> {
        Err(SocketError::from(ErrorCode::PermanentResolverFailure))
    }

    fn subscribe(&mut self, stream: Resource<ResolveAddressStream>) -> Result<Resource<DynPollable>> {
        subscribe(self.table, stream)
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> Result<()> {
        self.table.delete(stream)?;
        Ok(())
    }
}

impl network::Host for Immediate<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> Result<ErrorCode> {
        error.downcast()
    }

    fn network_error_code(&mut self, _: Resource<wasmtime::Error>) -> Result<Option<ErrorCode>> {
        Ok(None)
    }
}

impl network::HostNetwork for Immediate<'_> {
    /// The crate's function that creates a network does not check the meter, so this does.
    fn drop(&mut self, network: Resource<Network>) -> Result<()> {
        self.meter.check()?;
        self.table.delete(network)?;
        Ok(())
    }
}
