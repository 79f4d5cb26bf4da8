//! An opening that its application has not decided on.

use airloom_base::service::{FlowFacts, WriteError};
use airloom_base::{Body, CloseReason, Cx, Instant, Outgoing, Packet, PathId, Transport, TransportEvent};

/// What becomes of the opening when it is let in.
pub(crate) struct Opening {
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) ecn: u8,
    pub(crate) unit: Packet,
}

/// Stands for a connection until its application lets it in or turns it away. The peer hears nothing meanwhile; its repeated
/// openings are dropped.
pub(crate) struct Placeholder {
    told: bool,
    /// What a peer is answered that is turned away.
    refusal: Option<Packet>,
    refused: bool,
}

impl Placeholder {
    pub(crate) fn new(refusal: Option<Packet>) -> Placeholder {
        Placeholder { told: false, refusal, refused: false }
    }

    /// One that does nothing, while a connection's own machine is being replaced.
    pub(crate) fn idle() -> Placeholder {
        Placeholder { told: true, refusal: None, refused: false }
    }
}

impl Transport for Placeholder {
    fn connect(&mut self, _: &mut Cx) {}
    fn handle_packet(&mut self, _: &mut Cx, _: PathId, _: u8, _: Packet) {}
    fn poll_transmit(&mut self, _: &mut Cx) -> Option<Outgoing> {
        let packet = self.refusal.take_if(|_| self.refused)?;
        Some(Outgoing { path: PathId(0), ecn: 0, packet, last: true })
    }
    fn poll_event(&mut self) -> Option<TransportEvent> {
        if self.refused {
            return Some(TransportEvent::Gone).filter(|_| self.refusal.is_none());
        }
        if std::mem::replace(&mut self.told, true) { None } else { Some(TransportEvent::Asked) }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: &mut Cx) {}
    fn write(&mut self, _: &mut Cx, _: u32, _: Body) -> Result<usize, WriteError> {
        Err(WriteError::Blocked)
    }
    fn read(&mut self, _: &mut Cx, _: u32, _: usize) -> Option<Body> {
        None
    }
    fn finish(&mut self, _: &mut Cx, _: u32) {}
    fn reset(&mut self, _: &mut Cx) {
        self.refused = true;
    }
    fn path_mtu(&mut self, _: &mut Cx, _: PathId, _: u16) {}
    fn facts(&self) -> FlowFacts {
        let end = self.refused.then_some(CloseReason::Refused);
        FlowFacts { end, ..FlowFacts::default() }
    }
    fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
        self
    }
}
