//! The Push Access Protocol (WAP-164, WAP-247): who has something to push posts it over HTTP, in two parts: what is to be done,
//! as XML, and the content.
//!
//! Elements, attributes and codes are those that three other implementations have (two of gateways, one of an initiator); the text of
//! WAP-247 was not at hand. [`code::aborted`] alone rests on a single value that Kannel names. Taken are `push-message` to
//! one address of IP, `cancel-message` and `statusquery-message`; an initiator that asks for it (`ppg-notify-requested-to`) is told of the
//! end by a `resultnotification-message`. Left out: queries of what a client can do (`ccq-message`), replacement,
//! several addresses at once, progress notes, and addresses of telephone networks, for which there is no bearer here.

mod answers;
pub mod code;
mod message;
mod multipart;
mod notices;
mod submissions;

use std::net::IpAddr;

use airloom_base::{Duration, Instant};
use bytes::Bytes;
use url::Url;

use self::message::{Control, PushMessage, Refusal, control, unread};
use self::multipart::{Part, multipart};
use self::submissions::Submission;
use super::gateway::Gateway;
use super::push::{Push, PushError, PushId, PushOutcome};

pub use self::answers::TYPE;
pub(super) use self::submissions::{Notices, Submissions};

/// The largest message that is read.
pub const MOST: usize = 400_000;
/// Most octets of an address, of a client or of who is to be told: what is over is known by them for long.
const MOST_ADDRESS: usize = 1_024;

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status of HTTP.
    pub status: u16,
    /// An XML document.
    pub body: String,
}

impl Gateway {
    /// Seconds since 1970 when the machine's time was zero; 0 if nobody says so.
    pub fn set_calendar(&mut self, zero: u64) {
        self.calendar = zero;
    }

    /// A message came by POST, with this `Content-Type`. The answer's type is [`TYPE`].
    pub fn handle_pap(&mut self, now: Instant, content_type: &str, body: &Bytes) -> Answer {
        match self.read_pap(now, content_type, body) {
            //= WAP-247 (8): that a message was understood is 202, whatever came of it.
            Ok(body) => Answer { status: 202, body },
            Err((code, words)) => Answer { status: 400, body: answers::bad_message(code, &words) },
        }
    }

    fn read_pap(&mut self, now: Instant, content_type: &str, body: &Bytes) -> Result<String, Refusal> {
        if body.len() > MOST {
            return Err(unread("the message is too large"));
        }
        // What has no content may come without parts.
        let media = content_type.split(';').next().unwrap_or_default().trim();
        let parts = if ["application/xml", "text/xml"].iter().any(|xml| media.eq_ignore_ascii_case(xml)) {
            vec![(Vec::new(), body.clone())]
        } else {
            multipart(content_type, body).map_err(|words| unread(&words))?
        };
        let control = control(&parts[0].1)?;
        let at = self.seconds(now);
        Ok(match control {
            Control::Push(message) => {
                let (code, words) = match self.submit(now, &message, parts.get(1)) {
                    Ok(()) => (code::ACCEPTED, "accepted for processing".to_owned()),
                    Err(refusal) => refusal,
                };
                answers::push_response(&message.push_id, at, code, &words)
            }
            Control::Cancel { push_id } => {
                let known = self.submissions.get(&push_id).map(|known| (known.push, known.address.clone()));
                let (code, words) = match &known {
                    None => (code::PUSH_ID_NOT_FOUND, "there is no such push"),
                    Some((push, _)) if self.cancel_push(now, *push) => (code::OK, "it was taken back"),
                    Some(_) => (code::CANCELLATION_NOT_POSSIBLE, "it is on its way or over"),
                };
                answers::cancel_response(&push_id, known.as_ref().map(|(_, to)| to.as_str()), code, words)
            }
            Control::StatusQuery { push_id } => {
                answers::status_response(&push_id, self.submissions.get(&push_id))
            }
        })
    }

    fn submit(&mut self, now: Instant, message: &PushMessage, content: Option<&Part>) -> Result<(), Refusal> {
        let [address] = &message.addresses[..] else {
            let words = "exactly one address is taken".to_owned();
            return Err((code::MULTIPLE_ADDRESSES, words));
        };
        if address.len() > MOST_ADDRESS {
            return Err((code::ADDRESS_ERROR, "the address is too long".to_owned()));
        }
        let to = address_of(address)
            .ok_or_else(|| (code::ADDRESS_ERROR, format!("no address of IP: {address}")))?;
        if self.submissions.get(&message.push_id).is_some() {
            return Err((code::DUPLICATE_PUSH_ID, "there is a push of that name".to_owned()));
        }
        if !message.has_bearer() {
            return Err((code::BEARER_NOT_AVAILABLE, "there are bearers of IP only".to_owned()));
        }
        let notify = message.notify.as_deref().map(|to| {
            if to.len() > MOST_ADDRESS {
                return Err(unread("ppg-notify-requested-to is too long"));
            }
            let url = Url::parse(to).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            url.ok_or_else(|| unread("ppg-notify-requested-to is no address of HTTP"))
        });
        let notify = notify.transpose()?;
        let (headers, content) = content.ok_or_else(|| unread("there is no content"))?;
        let find = |name: &str| headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let content_type = find("content-type").map_or("application/octet-stream", |(_, value)| value);
        let is_entity = |name: &str| {
            !["content-type", "content-transfer-encoding", "content-id", "mime-version", "content-length"]
                .iter()
                .any(|mime| mime.eq_ignore_ascii_case(name))
        };
        let push = Push {
            to,
            method: message.method,
            content_type: content_type.to_owned(),
            headers: headers.iter().filter(|(name, _)| is_entity(name)).cloned().collect(),
            // What is kept is the content, and not the whole message.
            body: Bytes::copy_from_slice(content),
            after: message.deliver_after.and_then(|at| self.moment(at)),
            // A moment before the machine's time is over.
            before: message.deliver_before.map(|at| self.moment(at).unwrap_or(Instant::ZERO)),
        };
        let at = self.seconds(now);
        // It may be over before the call is: then it has to be known already.
        let submission = |push| Submission::new(push, address.clone(), notify.clone(), at);
        self.submissions.insert(message.push_id.clone(), submission(PushId(self.next + 1)));
        self.push(now, push).map(drop).map_err(|why| {
            self.submissions.forget(&message.push_id);
            match why {
                PushError::Content(why) => (code::TRANSFORMATION_FAILURE, why),
                PushError::NotPossible => {
                    (code::METHOD_NOT_POSSIBLE, "the client has no session that takes it".to_owned())
                }
                PushError::TooLarge => {
                    (code::METHOD_NOT_POSSIBLE, "it is larger than the client takes".to_owned())
                }
                PushError::Expired => (code::FORBIDDEN, "deliver-before-timestamp is past".to_owned()),
                PushError::Busy => (code::SERVICE_UNAVAILABLE, "there are too many pushes".to_owned()),
            }
        })
    }

    /// A push is over: if it came by PAP its initiator may ask, or wants to be told.
    pub(super) fn pap_ended(&mut self, now: Instant, push: PushId, outcome: PushOutcome) {
        let at = self.seconds(now);
        let told = self.submissions.end(push, outcome, at).and_then(|(push_id, submission)| {
            Some((submission.notify.clone()?, answers::result_notification(push_id, submission)))
        });
        if let Some((to, document)) = told {
            self.notify(now, to, document);
        }
    }

    /// Now, in seconds since 1970.
    pub(super) fn seconds(&self, now: Instant) -> u64 {
        self.calendar.saturating_add(now.as_nanos() / 1_000_000_000)
    }

    /// When it is so many seconds after 1970; none before the machine's time began.
    fn moment(&self, seconds: u64) -> Option<Instant> {
        let after = seconds.checked_sub(self.calendar)?;
        // Later than any moment there is is never.
        Some(Instant::ZERO + Duration::from_nanos(after.saturating_mul(1_000_000_000).min(u64::MAX / 2)))
    }
}

/// `WAPPUSH=127.0.0.5/TYPE=IPv4@host`; `TYPE=IPV6` likewise.
fn address_of(value: &str) -> Option<IpAddr> {
    let client = value.split('@').next()?;
    let (address, kind) = client.split_once('=')?.1.rsplit_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let kind = kind.strip_prefix("TYPE=").or_else(|| kind.strip_prefix("type="))?;
    let fits = if address.is_ipv4() { "ipv4" } else { "ipv6" };
    kind.eq_ignore_ascii_case(fits).then_some(address)
}

#[cfg(test)]
mod tests {
    use airloom_transports::wsp::status::Reason;

    use super::*;

    #[test]
    fn addresses_of_ip_are_found() {
        assert_eq!(address_of("WAPPUSH=127.0.0.5/TYPE=IPv4@ppg.example"), "127.0.0.5".parse().ok());
        assert_eq!(address_of("wappush=::1/type=IPV6@ppg"), "::1".parse().ok());
        for bad in ["WAPPUSH=+491701234567/TYPE=PLMN@ppg", "127.0.0.5", "WAPPUSH=127.0.0.5/TYPE=IPv6@x", ""] {
            assert_eq!(address_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn aborts_have_codes() {
        assert_eq!([Reason::UserPushNotDelivered, Reason::ProtocolError].map(code::aborted), [5028, 5016]);
        assert_eq!([Reason::Other(0), Reason::Other(255)].map(code::aborted), [4792, 5047]);
    }
}
