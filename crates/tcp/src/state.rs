//! The states of a connection and the ways between them (RFC 9293 3.3.2, figure 5).

/// State of a connection, in the standard's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "SCREAMING-KEBAB-CASE")]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has received and sent a SYN.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// Our side has finished, the peer has not acknowledged that.
    #[strum(serialize = "FIN-WAIT-1")]
    FinWait1,
    /// Our side has finished, the peer has not.
    #[strum(serialize = "FIN-WAIT-2")]
    FinWait2,
    /// The peer has finished, our side has not.
    CloseWait,
    /// Both have finished at once; the peer has not acknowledged our FIN.
    Closing,
    /// Both have finished, the peer first; it has not acknowledged our FIN.
    LastAck,
    /// Over, and remembered so that late segments are answered.
    TimeWait,
    /// Over.
    Closed,
}

/// What moves a connection from state to state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The application opened.
    Connect,
    /// A SYN arrived.
    Syn,
    /// Our SYN was acknowledged (and the peer's SYN is here).
    SynAcked,
    /// The application finished.
    Finish,
    /// The peer's FIN is here, and all before it.
    Fin,
    /// Our FIN was acknowledged.
    FinAcked,
    /// TIME-WAIT is over.
    Expired,
}

/// All transitions: step, from, to. A reset, from either side or by giving up, leads to CLOSED from everywhere.
pub const TRANSITIONS: &[(Step, State, State)] = &[
    (Step::Connect, State::Listen, State::SynSent),
    (Step::Syn, State::Listen, State::SynReceived),
    (Step::Syn, State::SynSent, State::SynReceived),
    (Step::SynAcked, State::SynSent, State::Established),
    (Step::SynAcked, State::SynReceived, State::Established),
    (Step::Finish, State::Established, State::FinWait1),
    (Step::Finish, State::CloseWait, State::LastAck),
    (Step::Fin, State::Established, State::CloseWait),
    (Step::Fin, State::FinWait1, State::Closing),
    (Step::Fin, State::FinWait2, State::TimeWait),
    (Step::FinAcked, State::FinWait1, State::FinWait2),
    (Step::FinAcked, State::Closing, State::TimeWait),
    (Step::FinAcked, State::LastAck, State::Closed),
    (Step::Expired, State::TimeWait, State::Closed),
];

impl State {
    /// The state after `step`; unchanged where the step means nothing.
    pub fn after(self, step: Step) -> State {
        TRANSITIONS.iter().find(|(s, from, _)| *s == step && *from == self).map_or(self, |(_, _, to)| *to)
    }

    /// Have both SYNs been exchanged and acknowledged?
    #[inline]
    pub fn is_synchronized(self) -> bool {
        self >= State::Established && self != State::Closed
    }

    /// May data (or a FIN) of ours be sent?
    #[inline]
    pub fn can_send(self) -> bool {
        matches!(
            self,
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck
        )
    }

    /// Is data of the peer taken?
    #[inline]
    pub fn can_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }

    /// The standard's name.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(from: State, steps: &[Step]) -> State {
        steps.iter().fold(from, |state, step| state.after(*step))
    }

    #[test]
    fn every_way_of_closing_ends_in_closed() {
        use Step::*;
        let open = State::Established;
        for (steps, last_but_one) in [
            (&[Finish, FinAcked, Fin][..], State::TimeWait),
            (&[Finish, Fin, FinAcked], State::TimeWait),
            (&[Fin, Finish], State::LastAck),
        ] {
            assert_eq!(walk(open, steps), last_but_one);
            let end = if last_but_one == State::TimeWait { Expired } else { FinAcked };
            assert_eq!(last_but_one.after(end), State::Closed);
        }
    }

    #[test]
    fn both_ways_of_opening_lead_to_established() {
        use Step::*;
        assert_eq!(walk(State::Listen, &[Connect, SynAcked]), State::Established);
        assert_eq!(walk(State::Listen, &[Connect, Syn, SynAcked]), State::Established);
        assert_eq!(walk(State::Listen, &[Syn, SynAcked]), State::Established);
    }

    #[test]
    fn a_step_that_means_nothing_changes_nothing() {
        assert_eq!(State::Closed.after(Step::Fin), State::Closed);
        assert_eq!(State::TimeWait.after(Step::FinAcked), State::TimeWait);
        assert_eq!(State::LastAck.after(Step::Fin), State::LastAck);
    }
}
