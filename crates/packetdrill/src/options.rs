//! Options of sockets, by their numbers on Linux.

use airloom_base::Duration;
use airloom_base::units::Octets;
use airloom_transports::tcp::config::Nagle;

use crate::info::TcpInfo;
use crate::stack::{Errno, Stack};

/// TCP_INQ, which is also the type of the control message that answers it (TCP_CM_INQ).
pub(crate) const TCP_INQ: i32 = 36;
/// TCP_CC_INFO and SO_MEMINFO: packetdrill asks for them beside TCP_INFO.
const TCP_CC_INFO: i32 = 26;
const SO_MEMINFO: i32 = 55;
const SO_ZEROCOPY: i32 = 60;
const MEMINFO: usize = 9 * 4;
/// Linux: no send buffer is smaller.
const SNDBUF_MIN: i32 = 4608;

/// What an option says.
pub(crate) enum Value {
    Number(i32),
    Info(Box<TcpInfo>),
    /// So many octets without meaning here.
    Zeros(usize),
}

/// `getsockopt`.
pub(crate) fn get(s: &mut Stack, fd: i32, level: i32, name: i32) -> Result<Value, Errno> {
    let number = match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            let (info, chronograph) = s.info(fd)?;
            return Ok(Value::Info(Box::new(TcpInfo::of(info, chronograph))));
        }
        (libc::IPPROTO_TCP, TCP_CC_INFO) => return Ok(Value::Zeros(0)),
        (libc::SOL_SOCKET, SO_MEMINFO) => return Ok(Value::Zeros(MEMINFO)),
        (libc::SOL_SOCKET, libc::SO_ERROR) => s.pending_error(fd)?,
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => match s.socket(fd)?.options.rcvbuf {
            Some(set) => set as i32,
            None => s.settings(fd)?.receive_buffer.0 as i32,
        },
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => match s.socket(fd)?.options.sndbuf {
            Some(set) => set as i32,
            None => s.settings(fd)?.send_buffer.0 as i32,
        },
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => i32::from(s.settings(fd)?.keepalive),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => i32::from(s.settings(fd)?.nagle == Nagle::Off),
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT) => s.socket(fd)?.options.notsent_lowat as i32,
        (libc::IPPROTO_TCP, TCP_INQ) => i32::from(s.socket(fd)?.options.inq),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => match (s.live(fd).map(|c| c.mss()), s.socket(fd)?) {
            (Some(mss), _) => mss as i32,
            (None, socket) => socket.options.maxseg.map_or(536, i32::from),
        },
        (libc::IPPROTO_IP, libc::IP_TOS) => i32::from(s.socket(fd)?.options.tos),
        _ => return Err(libc::ENOPROTOOPT),
    };
    Ok(Value::Number(number))
}

/// `setsockopt`; `second` is the second number of an option that has two.
pub(crate) fn set(
    s: &mut Stack,
    fd: i32,
    level: i32,
    name: i32,
    value: i32,
    second: Option<i32>,
) -> Result<(), Errno> {
    let on = value != 0;
    let seconds = Duration::from_secs(value.max(1) as u64);
    match (level, name) {
        // Writes are always copied, which SO_ZEROCOPY allows.
        (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT | SO_ZEROCOPY) => Ok(()),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) => Ok(()),
        (libc::IPPROTO_IP, libc::IP_TOS) => s.set_tos(fd, value as u8 & !3),
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            s.socket(fd)?.options.abortive = on && second == Some(0);
            Ok(())
        }
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => s.change(fd, |c| c.keepalive = on),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            // Linux: twice what was asked for, because half of it is bookkeeping.
            let doubled = value.max(0).saturating_mul(2).max(SNDBUF_MIN);
            s.socket(fd)?.options.sndbuf = Some(doubled as u32);
            s.change(fd, |c| {
                c.send_autotuning = false;
                c.send_buffer = Octets(doubled as u64);
            })
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            let octets = Octets(value.max(1) as u64);
            s.socket(fd)?.options.rcvbuf = Some(value.max(0).saturating_mul(2) as u32);
            s.change(fd, |c| {
                c.receive_buffer = octets;
                c.receive_autotuning = false;
                c.initial_receive_window = Octets(c.initial_receive_window.0.min(octets.0));
            })
        }
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
            s.change(fd, |c| c.nagle = if on { Nagle::Off } else { Nagle::Minshall })?;
            if on {
                s.touch(fd, |c| c.push());
            }
            Ok(())
        }
        (libc::IPPROTO_TCP, libc::TCP_CORK) => {
            s.touch(fd, |c| c.cork(on));
            Ok(())
        }
        (libc::IPPROTO_TCP, TCP_INQ) => {
            s.socket(fd)?.options.inq = on;
            Ok(())
        }
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT) => {
            s.socket(fd)?.options.notsent_lowat = value as u32;
            Ok(())
        }
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            if on && !(88..=32_767).contains(&value) {
                return Err(libc::EINVAL);
            }
            s.socket(fd)?.options.maxseg = on.then_some(value as u16);
            s.change(fd, |c| c.mss = if on { value as u16 } else { 65_495 })
        }
        // What Linux refuses.
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE | libc::TCP_KEEPINTVL) if !(1..=32_767).contains(&value) => {
            Err(libc::EINVAL)
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT | libc::TCP_SYNCNT) if !(1..=127).contains(&value) => {
            Err(libc::EINVAL)
        }
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) if value < 0 => Err(libc::EINVAL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => s.change(fd, |c| c.keepalive_idle = seconds),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => s.change(fd, |c| c.keepalive_interval = seconds),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => s.change(fd, |c| c.keepalive_probes = value as u8),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT) => {
            // The timeouts of so many SYNs after the first, and before them those that do not double.
            let n = value.min(16) as u32;
            s.change(fd, |c| {
                c.syn_give_up = c.rto_initial * (u64::from(c.syn_linear_timeouts) + (1 << (n + 1)) - 1)
            })
        }
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => {
            // tcp(7): 0 is the time of the host again.
            let host = s.host_settings().give_up;
            s.change(fd, |c| c.give_up = if on { Duration::from_millis(value as u64) } else { host })
        }
        _ => Err(libc::ENOPROTOOPT),
    }
}
