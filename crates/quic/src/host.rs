//! What all connections of a host share: the library's endpoint, its names and keys.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use airloom_base::random::{Stream, derive};
use airloom_base::service::Path;

use crate::config::{BASE_DATAGRAM, Config, Migration, Session};
use crate::dateless::Dateless;
use crate::guard::Guard;
use crate::keylog::KeyLog;
use crate::library::{
    self, AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, Endpoint, EndpointConfig, EndpointEvent, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, TransportConfig, VarInt, crypto,
};
use crate::pace::{Factory, Meter};
use crate::qlog::{About, Opening, Trace};
use crate::real::Tls;
use crate::secret::Secret;
use crate::session::handshake::{Common, Starter};
use crate::session::model::Model;
use crate::session::seeded::Seeded;
use crate::session::tickets::Office;
use crate::session::{Protection, Sizes};
use crate::streams::Recent;
use crate::ways::MOST_PATHS;

/// What applications speak that know nothing of streams.
pub(crate) const PLAIN: &str = "airloom";

/// The name that clients ask for: a simulated host has none on a certificate.
pub(crate) const SERVER_NAME: &str = "server.airloom";

/// Octets of our connection ids.
const ID: usize = 8;

/// Octets of the headers of IPv4 and UDP.
const HEADERS: u16 = 28;

/// Octets of IP's and UDP's headers on a path.
pub(crate) const fn overhead(path: &Path) -> u16 {
    path.ip_header() + 8
}

/// The next connection ids, of which those that are known tell nothing.
struct Ids(Secret, u64);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.1 += 1;
        let mut id = [0; ID];
        self.0.say(&[&self.1.to_be_bytes()], &mut id);
        ConnectionId::new(&id)
    }
    fn cid_len(&self) -> usize {
        ID
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A host's endpoint and what connections are made from.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) config: Config,
    /// The host's addresses, in the order of its links.
    pub(crate) addresses: Vec<IpAddr>,
    /// What the host is called.
    pub(crate) name: String,
    common: Arc<Common>,
    /// TLS in place of that, if it speaks it.
    tls: Option<Tls>,
    /// The packet that opened its last connection.
    opening: Opening,
    log: KeyLog,
    tokens: Arc<Secret>,
    /// First destination connection ids of clients: names that are used once.
    first_ids: Ids,
    /// Where congestion controllers have their chances from.
    draws: Arc<Mutex<Stream>>,
    /// What its connections have made last of filler.
    pub(crate) recent: Recent,
    /// The flows of connections, by the library's number of them.
    flows: BTreeMap<usize, u32>,
}

/// A host, for its protocol and its connections.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<Host>>);

impl Shared {
    /// Adds to `secrets` the lines of a key log by which what servers of this host send from now on can be read.
    pub(crate) fn tell_secrets(&self, secrets: &mut String) {
        self.lock().log.tell(secrets);
    }

    /// A host of the run with this seed. Random numbers are called after `name`; the secrets that packets are protected by are
    /// the same on all hosts.
    pub(crate) fn new(config: Config, seed: u64, name: &str, log: KeyLog) -> Shared {
        let stream = |purpose: &str| Stream::new(seed, &format!("{name}.transport.quic.{purpose}"));
        let protection: Box<dyn Protection> = match config.session {
            Session::Auto | Session::Model | Session::Tls => Box::new(Model),
            Session::Seeded => Box::new(Seeded::new(derive(seed, "quic.secrets"), log.clone())),
        };
        let sizes = Sizes {
            certificates: config.certificates.0 as usize,
            post_quantum: config.post_quantum,
            tickets: config.tickets,
            resumes: config.resumes,
            zero_rtt: config.zero_rtt,
        };
        let common = Arc::new(Common {
            sizes,
            protection,
            randoms: Mutex::new(stream("hello")),
            office: Mutex::new(Office::new(Secret::of(&mut stream("tickets")))),
            wallet: Mutex::default(),
            certificate: OnceLock::new(),
            is_told: AtomicBool::new(false),
        });
        let mut secrets = stream("secrets");
        let mut endpoint = EndpointConfig::new(Arc::new(Secret::of(&mut secrets)));
        let mut rng_seed = [0; 32];
        rng_seed.chunks_mut(8).for_each(|part| part.copy_from_slice(&secrets.bits().to_be_bytes()));
        endpoint.rng_seed(Some(rng_seed)).supported_versions(vec![1]).grease_quic_bit(false);
        let ids = Secret::of(&mut secrets);
        library::name_by(&mut endpoint, move || Box::new(Ids(ids, 0)));
        let mut host = Host {
            endpoint: library::endpoint(endpoint),
            config,
            addresses: Vec::new(),
            name: name.to_owned(),
            common,
            tls: None,
            opening: Opening::default(),
            log,
            tokens: Arc::new(Secret::of(&mut secrets)),
            first_ids: Ids(Secret::of(&mut secrets), 0),
            draws: Arc::new(Mutex::new(stream("controllers"))),
            recent: Recent::default(),
            flows: BTreeMap::new(),
        };
        host.listen();
        Shared(Arc::new(Mutex::new(host)))
    }

    /// Passes on what a connection has to tell the endpoint, and the other way.
    pub(crate) fn settle(&self, handle: ConnectionHandle, connection: &mut Connection) {
        while let Some(event) = connection.poll_endpoint_events() {
            let mut host = self.lock();
            if event.is_drained() {
                host.flows.remove(&handle.0);
            }
            if let Some(event) = host.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
    }

    /// The host, for a moment.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Host> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// What a client calls a server: TLS names an address to nobody (RFC 6066, 3).
    pub(crate) fn name_of(&self, server: IpAddr) -> String {
        if self.tls.is_some() { server.to_string() } else { SERVER_NAME.to_owned() }
    }

    /// From now on it speaks TLS.
    pub(crate) fn speak(&mut self, tls: Tls) {
        self.tls = Some(tls);
        self.listen();
    }

    /// It has these addresses, and takes IP datagrams of `mtu` octets at most; there is no connection yet.
    pub(crate) fn own(&mut self, addresses: &[IpAddr], mtu: u16) {
        self.addresses = addresses.to_vec();
        let mut endpoint = self.endpoint.config().clone();
        //= RFC 9000 (18.2): max_udp_payload_size is a limit of the receiver's, beside that of the path. The library says what fits into
        //= 1500 octets.
        let payload = mtu.saturating_sub(HEADERS);
        if u64::from(payload) > endpoint.get_max_udp_payload_size()
            && endpoint.max_udp_payload_size(payload).is_ok()
        {
            self.endpoint = library::endpoint(endpoint);
            self.listen();
        }
    }

    /// Says what reads the first packets of strangers; a connection gets settings of its own.
    fn listen(&mut self) {
        let nowhere = Path { local: [0; 4].into(), remote: [0; 4].into(), mtu: 1500 };
        let reads = self.server(PLAIN, &nowhere, Arc::default(), None, &Guard::default());
        self.endpoint.set_server_config(Some(Arc::new(reads)));
    }

    /// Does somebody want to know of all that arrives?
    pub(crate) fn tell(&self, is_told: bool) {
        self.common.is_told.store(is_told, Relaxed);
        self.opening.want(is_told);
    }

    /// The events of a connection that begins; `first` is what its client called it, where the library may not know it any more.
    pub(crate) fn trace(
        &self,
        now: airloom_base::Instant,
        flow: u32,
        is_client: bool,
        path: &Path,
        ports: (u16, u16),
        first: Option<ConnectionId>,
    ) -> Trace {
        let about = About {
            host: self.name.clone(),
            flow,
            is_client,
            local: (Some(path.local), Some(ports.0)),
            remote: (path.remote, ports.1).into(),
            first,
            initial_rtt: self.config.initial_rtt,
            packet_threshold: self.config.packet_threshold,
        };
        Trace::new(about, now)
    }

    /// A connection has this flow.
    pub(crate) fn enter(&mut self, handle: ConnectionHandle, flow: u32) {
        self.flows.insert(handle.0, flow);
    }

    /// The flow of a connection.
    pub(crate) fn flow(&self, handle: ConnectionHandle) -> Option<u32> {
        self.flows.get(&handle.0).copied()
    }

    /// A connection is dropped before its time.
    pub(crate) fn forget(&mut self, handle: ConnectionHandle) {
        if self.flows.remove(&handle.0).is_some() {
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }

    /// What a client's connection is made from.
    pub(crate) fn client(
        &mut self,
        spoken: &'static str,
        path: &Path,
        server: SocketAddr,
        meter: Arc<Meter>,
        trace: Option<&Trace>,
    ) -> ClientConfig {
        let starter = Starter { common: self.common.clone(), spoken, server: Some(server) };
        let real = self.tls.as_ref().and_then(|tls| tls.client(spoken));
        let crypto: Arc<dyn crypto::ClientConfig> = real.unwrap_or_else(|| Arc::new(starter));
        let mut config = ClientConfig::new(match trace {
            Some(trace) => trace.client(crypto),
            None => crypto,
        });
        let first = self.first_ids.generate_cid();
        config.initial_dst_cid_provider(Arc::new(move || first));
        config.transport_config(Arc::new(self.transport(path, meter, trace)));
        config
    }

    /// What a server's connection is made from.
    pub(crate) fn server(
        &self,
        spoken: &'static str,
        path: &Path,
        meter: Arc<Meter>,
        trace: Option<&Trace>,
        guard: &Guard,
    ) -> ServerConfig {
        let starter = Starter { common: self.common.clone(), spoken, server: None };
        let real = self.tls.as_ref().and_then(|tls| tls.server(spoken));
        let crypto: Arc<dyn crypto::ServerConfig> = real.unwrap_or_else(|| Arc::new(starter));
        let crypto = match trace {
            Some(trace) => trace.server(crypto, &self.opening),
            None => self.opening.listen(crypto),
        };
        let mut config = ServerConfig::new(guard.around(crypto), self.tokens.clone());
        config.time_source(Arc::new(Dateless)).migration(self.config.migration != Migration::Off);
        config.transport_config(Arc::new(self.transport(path, meter, trace)));
        config
    }

    fn transport(&self, path: &Path, meter: Arc<Meter>, trace: Option<&Trace>) -> TransportConfig {
        let config = &self.config;
        let std = |time: airloom_base::Duration| Duration::from_nanos(time.as_nanos());
        let octets = |n: airloom_base::units::Octets| VarInt::from_u64(n.0).unwrap_or(VarInt::MAX);
        // A moment of nothing is not a timeout.
        let some = |time: airloom_base::Duration| Some(std(time)).filter(|time| !time.is_zero());
        let largest = path.mtu.saturating_sub(overhead(path)).max(BASE_DATAGRAM);
        let first = config.initial_datagram.min(largest);
        let factory = Factory::new(config, first, meter, trace.cloned(), &self.draws);
        let mut out = TransportConfig::default();
        out.congestion_controller_factory(Arc::new(factory))
            .initial_rtt(std(config.initial_rtt))
            .packet_threshold(config.packet_threshold)
            .time_threshold(config.time_threshold)
            .persistent_congestion_threshold(config.persistent_congestion_threshold)
            .max_idle_timeout(some(config.idle_timeout).and_then(|time| IdleTimeout::try_from(time).ok()))
            .keep_alive_interval(some(config.keep_alive))
            .initial_mtu(first)
            .receive_window(octets(config.receive_window))
            .stream_receive_window(octets(config.stream_window))
            .send_window(config.send_buffer.0)
            .max_concurrent_bidi_streams(config.bidi_streams.into())
            .max_concurrent_uni_streams(config.uni_streams.into())
            //= RFC 9000 (7.5): 4096 octets out of order at least; a server's flight with the largest certificates has more than 16,384.
            .crypto_buffer_size(1 << 16)
            .datagram_receive_buffer_size(
                Some(config.datagram_buffer.0 as usize).filter(|octets| *octets > 0),
            )
            .allow_spin(config.spin_bit)
            .enable_segmentation_offload(false);
        if config.migration == Migration::Probe {
            library::several_paths(&mut out, MOST_PATHS as u32);
        }
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(largest);
        out.mtu_discovery_config(config.mtu_discovery.then_some(discovery));
        if config.ack_every > 0 {
            let mut acks = AckFrequencyConfig::default();
            // The library counts those that need not be acknowledged at once.
            acks.ack_eliciting_threshold((config.ack_every - 1).into())
                .max_ack_delay(some(config.max_ack_delay));
            out.ack_frequency_config(Some(acks));
        }
        out
    }
}
