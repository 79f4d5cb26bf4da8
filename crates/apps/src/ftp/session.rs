//! One client of a server: what it may say, and the answers.

use std::net::{IpAddr, SocketAddr};

use airloom_base::{Cx, Instant, SocketEvent, SocketId, Sockets};
use bytes::Bytes;

use super::SOURCE;
use super::control::Control;
use super::shared::{Role, Shared};
use super::wire::{self, Line};
use crate::net::{Outgoing, UnderWay};

/// What a session wants of the server after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Nothing.
    Wait,
    /// It is over: finish the control connection.
    Finish,
    /// It is over: reset the control connection.
    Reset,
    /// It is over, and so is its control connection.
    Forget,
}

/// Has the client said who it is?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    No,
    Named,
    Yes,
}

/// Where the next data connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataPort {
    /// Nobody has said.
    Unknown,
    /// The client comes to this port of ours.
    Passive(u16),
    /// We go to the client.
    Active(SocketAddr),
}

/// A file that was asked for.
enum File {
    Get(Outgoing),
    Put(String),
}

/// A file, from the command to the reply that ends it.
struct Transfer {
    file: File,
    received: u64,
    last: Option<Instant>,
}

/// A control connection and what belongs to it.
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) control: Control,
    peer: IpAddr,
    local: IpAddr,
    login: Login,
    /// The client has said that EPSV alone will ask for data connections.
    is_extended: bool,
    place: DataPort,
    /// The data connection, and whether it is open.
    data: Option<(SocketId, bool)>,
    transfer: Option<Transfer>,
    /// The data connection of the last file, which may have much of it to send still.
    leaving: Option<SocketId>,
    under_way: UnderWay,
    pub(super) moved_at: Instant,
    /// The client has finished its side, or has said QUIT.
    is_over: bool,
}

impl Session {
    pub(super) fn new(number: u64, socket: SocketId, peer: IpAddr, local: IpAddr) -> Session {
        Session {
            number,
            control: Control::new(socket),
            peer,
            local,
            login: Login::No,
            is_extended: false,
            place: DataPort::Unknown,
            data: None,
            transfer: None,
            leaving: None,
            under_way: UnderWay::default(),
            moved_at: Instant::ZERO,
            is_over: false,
        }
    }

    pub(super) fn greet(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.control.say(cx, net, "220 Service ready.");
    }

    /// Is a data connection from this address awaited?
    //= RFC 2577 (5): a server may refuse data connections from addresses other than that of the control connection.
    pub(super) fn may_take(&self, from: IpAddr) -> bool {
        self.data.is_none() && from == self.peer
    }

    /// A data connection came to our passive port.
    pub(super) fn take(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        shared: &mut Shared,
        socket: SocketId,
    ) -> Then {
        if let DataPort::Passive(port) = self.place {
            shared.forget(port);
        }
        self.place = DataPort::Unknown;
        shared.roles.insert(socket, (self.number, Role::Data));
        self.data = Some((socket, true));
        self.moved_at = cx.now;
        self.open(cx, net, shared)
    }

    pub(super) fn control_event(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        shared: &mut Shared,
        event: SocketEvent,
    ) -> Then {
        match event {
            SocketEvent::Writable => {
                self.control.write(cx, net);
                self.listen(cx, net, shared)
            }
            SocketEvent::Readable(_) => self.listen(cx, net, shared),
            SocketEvent::Finished => {
                self.is_over = true;
                self.listen(cx, net, shared)
            }
            SocketEvent::Closed(_) => {
                self.break_off(cx.now, shared);
                Then::Forget
            }
            _ => Then::Wait,
        }
    }

    /// Reads commands while there is nothing else to do: one at a time, and none before the answer to the last one is written.
    fn listen(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) -> Then {
        while self.transfer.is_none() && self.control.is_written() {
            let Some(line) = self.control.line(cx, net) else {
                return if self.is_over { Then::Finish } else { Then::Wait };
            };
            self.moved_at = cx.now;
            shared.counters.commands += 1;
            match line {
                Line::Text(text) => self.obey(cx, net, shared, &text),
                Line::TooLong => self.say(cx, net, shared, "500 Command line too long."),
            }
            if self.is_over {
                break;
            }
        }
        // The last reply is still on its way out of our buffer only if the peer reads nothing: then it misses it.
        if self.is_over && self.transfer.is_none() { Then::Finish } else { Then::Wait }
    }

    fn say(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared, line: &str) {
        shared.counters.refused += u64::from(line.starts_with(['4', '5']));
        self.control.say(cx, net, line);
    }

    /// Does what a command asks for.
    fn obey(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared, line: &str) {
        let (word, argument) = wire::command(line);
        let is_free = matches!(word.as_str(), "USER" | "PASS" | "QUIT" | "NOOP" | "SYST" | "FEAT");
        if !is_free && self.login != Login::Yes {
            return self.say(cx, net, shared, "530 Not logged in.");
        }
        let reply = match word.as_str() {
            "USER" => {
                self.login = Login::Named;
                "331 User name okay, need password."
            }
            "PASS" if self.login == Login::Named => {
                self.login = Login::Yes;
                "230 User logged in, proceed."
            }
            "PASS" => "503 Login with USER first.",
            "QUIT" => {
                self.is_over = true;
                "221 Service closing control connection."
            }
            "NOOP" => "200 Command okay.",
            "SYST" => "215 UNIX Type: L8",
            //= RFC 3659 (4.3): who has SIZE says so.
            "FEAT" => "211-Features:\r\n SIZE\r\n211 End",
            "PWD" => "257 \"/\" is the current directory.",
            "CWD" if matches!(argument, "/" | "." | "") => "250 Requested file action okay, completed.",
            "CWD" => "550 No such directory.",
            "TYPE" => match argument.to_ascii_uppercase().as_str() {
                "I" | "L 8" => "200 Type set to I.",
                _ => "504 Files are sent as images: TYPE I.",
            },
            "MODE" if argument.eq_ignore_ascii_case("S") => "200 Mode set to S.",
            "STRU" if argument.eq_ignore_ascii_case("F") => "200 Structure set to F.",
            "MODE" | "STRU" => "504 Command not implemented for that parameter.",
            "EPSV" if argument.eq_ignore_ascii_case("ALL") => {
                self.is_extended = true;
                "200 Command okay."
            }
            //= RFC 2428 (3): after EPSV ALL nothing else asks for data connections.
            "PORT" | "EPRT" | "PASV" if self.is_extended => "503 Only EPSV, after EPSV ALL.",
            "PORT" => return self.go_to(cx, net, shared, wire::parse_host_port(argument)),
            "EPRT" => return self.go_to(cx, net, shared, wire::parse_extended(argument)),
            "PASV" | "EPSV" => return self.wait(cx, net, shared, &word),
            "SIZE" => match shared.size_of(argument) {
                Some(size) => return self.say(cx, net, shared, &format!("213 {size}")),
                None => "550 No such file.",
            },
            "RETR" => match shared.size_of(argument) {
                Some(size) => {
                    let file = File::Get(Outgoing::new(Bytes::new(), SOURCE, size));
                    return self.begin(cx, net, shared, file);
                }
                None => "550 No such file.",
            },
            "STOR" if argument.is_empty() => "501 Which file?",
            "STOR" if !shared.has_room(argument) => "452 Insufficient storage space.",
            "STOR" => return self.begin(cx, net, shared, File::Put(argument.to_owned())),
            "ABOR" => "225 No transfer in progress.",
            "ACCT" | "ALLO" => "202 Command superfluous at this site.",
            "CDUP" | "SMNT" | "REIN" | "STOU" | "APPE" | "REST" | "RNFR" | "RNTO" | "DELE" | "RMD"
            | "MKD" | "LIST" | "NLST" | "SITE" | "STAT" | "HELP" | "MDTM" => "502 Command not implemented.",
            _ => "500 Command unrecognized.",
        };
        self.say(cx, net, shared, reply);
    }

    /// PORT or EPRT.
    fn go_to(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared, to: Option<SocketAddr>) {
        //= RFC 2577 (3): to connect to somebody else in a client's name is refused, and so are ports below 1024.
        let reply = match to {
            Some(to) if to.ip() == self.peer && to.port() >= 1024 => {
                self.drop_data(cx, net, shared);
                self.place = DataPort::Active(to);
                "200 Command okay."
            }
            Some(_) => "504 Data goes to the client's own address, to ports from 1024 on.",
            None => "501 Syntax error in parameters.",
        };
        self.say(cx, net, shared, reply);
    }

    /// PASV or EPSV.
    fn wait(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared, word: &str) {
        self.drop_data(cx, net, shared);
        let Some(port) = shared.wait(self.number) else {
            return self.say(cx, net, shared, "425 No port is free.");
        };
        let reply = match (word, self.local) {
            ("EPSV", _) => format!("229 Entering Extended Passive Mode (|||{port}|)"),
            (_, IpAddr::V4(address)) => {
                format!("227 Entering Passive Mode ({}).", wire::host_port(address, port))
            }
            (_, IpAddr::V6(_)) => {
                shared.forget(port);
                return self.say(cx, net, shared, "522 This is IPv6: use EPSV.");
            }
        };
        self.place = DataPort::Passive(port);
        self.say(cx, net, shared, &reply);
    }

    /// RETR or STOR: goes for the data connection, if it is not there yet.
    fn begin(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared, file: File) {
        match (self.data, self.place) {
            (None, DataPort::Unknown) => return self.say(cx, net, shared, "425 Use PORT or PASV first."),
            (None, DataPort::Active(to)) => {
                let socket = net.connect(cx, to);
                shared.roles.insert(socket, (self.number, Role::Data));
                self.data = Some((socket, false));
                self.place = DataPort::Unknown;
            }
            _ => {}
        }
        self.transfer = Some(Transfer { file, received: 0, last: None });
        if let Some((_, true)) = self.data {
            self.say(cx, net, shared, "150 Opening data connection.");
            self.move_data(cx, net, shared);
        }
    }

    /// The data connection is open: if a file waits for it, it goes.
    fn open(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) -> Then {
        if self.transfer.is_some() {
            self.say(cx, net, shared, "150 Opening data connection.");
            self.move_data(cx, net, shared);
            return self.listen(cx, net, shared);
        }
        Then::Wait
    }

    pub(super) fn data_event(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        shared: &mut Shared,
        event: SocketEvent,
    ) -> Then {
        self.moved_at = cx.now;
        match event {
            SocketEvent::Opened => {
                if let Some((_, is_open)) = &mut self.data {
                    *is_open = true;
                }
                return self.open(cx, net, shared);
            }
            SocketEvent::Readable(_) | SocketEvent::Writable => self.move_data(cx, net, shared),
            SocketEvent::Finished => {
                self.move_data(cx, net, shared);
                self.peer_finished(cx, net, shared);
            }
            SocketEvent::Closed(_) => {
                let was_open = self.data.take().is_some_and(|(_, is_open)| is_open);
                if self.break_off(cx.now, shared) {
                    let reply = if was_open {
                        "426 Data connection closed; transfer aborted."
                    } else {
                        "425 Can't open data connection."
                    };
                    self.say(cx, net, shared, reply);
                }
            }
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
        }
        self.listen(cx, net, shared)
    }

    /// Writes or reads what goes.
    fn move_data(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) {
        let (Some(transfer), Some((socket, true))) = (&mut self.transfer, self.data) else { return };
        match &mut transfer.file {
            File::Get(outgoing) => {
                let (_, before) = outgoing.unwritten();
                let is_written = outgoing.pump(cx, net, socket);
                shared.counters.sent_bytes += before - outgoing.unwritten().1;
                self.under_way.note(net.unacknowledged(socket));
                if is_written {
                    shared.counters.sent += 1;
                    self.end(cx, net, shared);
                }
            }
            File::Put(_) => {
                let before = transfer.received;
                while let Some(body) = net.read(cx, socket, usize::MAX) {
                    transfer.received += body.len() as u64;
                }
                shared.counters.received_bytes += transfer.received - before;
                if transfer.received > before
                    && let Some(last) = transfer.last.replace(cx.now)
                {
                    let longest = &mut shared.counters.longest_pause;
                    *longest = (*longest).max(Some(cx.now - last));
                }
            }
        }
    }

    /// The client sends no more on the data connection: that ends a put, and breaks a get.
    fn peer_finished(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) {
        match self.transfer.as_ref().map(|transfer| (&transfer.file, transfer.received)) {
            Some((File::Put(name), received)) => {
                shared.store(name, received);
                shared.counters.stored += 1;
                self.end(cx, net, shared);
            }
            // The client of a get may have nothing to say; if it is gone a reset will follow.
            Some((File::Get(..), _)) => {}
            None => self.drop_data(cx, net, shared),
        }
    }

    /// The file is over.
    fn end(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) {
        self.transfer = None;
        if let Some((socket, _)) = self.data.take() {
            shared.roles.remove(socket);
            net.finish(cx, socket);
            self.leaving = Some(socket);
        }
        self.say(cx, net, shared, "226 Closing data connection.");
    }

    /// The file on its way, if there is one, comes to nothing; the pause that ended it counts as well.
    fn break_off(&mut self, now: Instant, shared: &mut Shared) -> bool {
        let Some(transfer) = self.transfer.take() else { return false };
        shared.counters.broken += 1;
        if let Some(last) = transfer.last {
            let longest = &mut shared.counters.longest_pause;
            *longest = (*longest).max(Some(now.since(last)));
        }
        true
    }

    /// Whatever there is of a data connection is given up.
    pub(super) fn drop_data(&mut self, cx: &mut Cx, net: &mut dyn Sockets, shared: &mut Shared) {
        if let DataPort::Passive(port) = std::mem::replace(&mut self.place, DataPort::Unknown) {
            shared.forget(port);
        }
        self.break_off(cx.now, shared);
        if let Some((socket, _)) = self.data.take() {
            shared.roles.remove(socket);
            net.reset(cx, socket);
        }
    }

    /// Has more of a file arrived, though nothing else has happened?
    pub(super) fn gets_on(&mut self, net: &dyn Sockets) -> bool {
        let socket = self.data.map(|(socket, _)| socket).or(self.leaving);
        socket.is_some_and(|socket| self.under_way.gets_on(net.unacknowledged(socket)))
    }

    /// Nothing has moved for too long.
    pub(super) fn time_out(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Then {
        if !self.control.is_written() {
            return Then::Reset;
        }
        self.control.say(cx, net, "421 Timeout, closing control connection.");
        Then::Finish
    }
}
