//! Control documents: what an initiator wants.

use airloom_content::service::time;
use quick_xml::events::{BytesStart, Event};

use super::code;
use crate::wap_gateway::push::Method;

/// Why a message is refused: its code, and words for people.
pub(super) type Refusal = (u16, String);

/// Most octets of a name of a push.
const MOST_NAME: usize = 256;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Push(PushMessage),
    /// Take a push back.
    Cancel {
        push_id: String,
    },
    /// What became of a push?
    StatusQuery {
        push_id: String,
    },
}

/// A push and how it is to be delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PushMessage {
    pub(super) push_id: String,
    pub(super) addresses: Vec<String>,
    pub(super) method: Method,
    /// Seconds since 1970.
    pub(super) deliver_after: Option<u64>,
    pub(super) deliver_before: Option<u64>,
    /// Who is to be told of the end.
    pub(super) notify: Option<String>,
    /// A bearer that has to be used.
    pub(super) bearer: Option<String>,
}

/// Bearers that carry no IP; any other one that an initiator asks for is as good as ours.
const WITHOUT_IP: [&str; 7] = ["SMS", "USSD", "GUTS/R-Data", "FLEX", "ReFLEX", "SDS", "MPAK"];

impl PushMessage {
    /// Can it take the bearer that it must take?
    pub(super) fn has_bearer(&self) -> bool {
        let is = |bearer: &str| WITHOUT_IP.iter().any(|none| none.eq_ignore_ascii_case(bearer));
        !self.bearer.as_deref().is_some_and(is)
    }
}

pub(super) fn unread(words: &str) -> Refusal {
    (code::BAD_REQUEST, words.to_owned())
}

/// Reads a control document.
pub(super) fn control(octets: &[u8]) -> Result<Control, Refusal> {
    let text = std::str::from_utf8(octets).map_err(|_| unread("the control document is not UTF-8"))?;
    let mut reader = quick_xml::Reader::from_str(text);
    let mut control: Option<Control> = None;
    let mut depth = 0_usize;
    loop {
        let event = reader.read_event();
        match event {
            Ok(Event::Start(tag)) => {
                element(&mut control, &tag)?;
                depth += 1;
            }
            Ok(Event::Empty(tag)) => element(&mut control, &tag)?,
            Ok(Event::End(_)) => depth = depth.saturating_sub(1),
            Ok(Event::Eof) if depth > 0 => return Err(unread("the control document is cut off")),
            Ok(Event::Eof) => {
                return control.ok_or_else(|| unread("there is no message in the control document"));
            }
            Ok(_) => {}
            Err(why) => return Err(unread(&format!("the control document is not well-formed: {why}"))),
        }
    }
}

fn element(control: &mut Option<Control>, tag: &BytesStart<'_>) -> Result<(), Refusal> {
    let name = tag.name();
    match (name.as_ref(), &mut *control) {
        ("pap", None) => {}
        ("push-message", None) => *control = Some(Control::Push(push_message(tag)?)),
        ("cancel-message", None) => *control = Some(Control::Cancel { push_id: push_id(tag)? }),
        ("statusquery-message", None) => *control = Some(Control::StatusQuery { push_id: push_id(tag)? }),
        (_, None) => {
            let words = "only push-message, cancel-message and statusquery-message are understood";
            return Err((code::NOT_IMPLEMENTED, words.to_owned()));
        }
        ("push-message" | "cancel-message" | "statusquery-message" | "ccq-message", Some(_)) => {
            return Err(unread("there is more than one message"));
        }
        ("address", Some(Control::Push(message))) => {
            let value =
                attribute(tag, "address-value").ok_or_else(|| unread("an address without a value"))?;
            message.addresses.push(value);
        }
        ("quality-of-service", Some(Control::Push(message))) => quality(message, tag)?,
        // Addresses of queries: each push has one address only.
        (_, Some(_)) => {}
    }
    Ok(())
}

fn push_message(tag: &BytesStart<'_>) -> Result<PushMessage, Refusal> {
    if attribute(tag, "replace-push-id").is_some() {
        return Err((
            code::REPLACEMENT_NOT_SUPPORTED,
            "pushes are not replaced; cancel the old one".to_owned(),
        ));
    }
    Ok(PushMessage {
        push_id: push_id(tag)?,
        deliver_after: timestamp(tag, "deliver-after-timestamp")?,
        deliver_before: timestamp(tag, "deliver-before-timestamp")?,
        notify: attribute(tag, "ppg-notify-requested-to"),
        ..PushMessage::default()
    })
}

fn quality(message: &mut PushMessage, tag: &BytesStart<'_>) -> Result<(), Refusal> {
    message.method = match attribute(tag, "delivery-method").as_deref() {
        Some("confirmed") => Method::Confirmed,
        Some("preferconfirmed") => Method::PreferConfirmed,
        Some("unconfirmed" | "notspecified") | None => Method::Unconfirmed,
        Some(_) => return Err(unread("there is no such delivery method")),
    };
    let required = attribute(tag, "bearer-required").as_deref() == Some("true");
    message.bearer = attribute(tag, "bearer").filter(|_| required);
    Ok(())
}

fn push_id(tag: &BytesStart<'_>) -> Result<String, Refusal> {
    let id = attribute(tag, "push-id").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| unread("the message has no push-id"))?;
    if id.len() > MOST_NAME { Err(unread("the push-id is too long")) } else { Ok(id) }
}

fn timestamp(tag: &BytesStart<'_>, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = attribute(tag, name) else { return Ok(None) };
    let seconds = time::seconds(text.trim());
    seconds.map(Some).ok_or_else(|| unread(&format!("{name} is no time as in 2002-02-28T06:45:00Z")))
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok().flatten()?;
    quick_xml::escape::unescape(&attribute.value).ok().map(|value| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inside: &str) -> Result<Control, Refusal> {
        control(
            format!("<?xml version=\"1.0\"?><!DOCTYPE pap><pap product-name=\"x\">{inside}</pap>").as_bytes(),
        )
    }

    #[test]
    fn control_documents_say_what_to_do() {
        let message = read(
            "<push-message push-id=\"a&amp;b\" deliver-before-timestamp=\"1970-01-01T00:01:00Z\" \
             deliver-after-timestamp=\"1970-01-01T00:00:30Z\" ppg-notify-requested-to=\"http://here/\">\
             <address address-value=\"X\"></address><quality-of-service delivery-method=\"confirmed\" \
             bearer=\"SMS\" bearer-required=\"true\"/></push-message>",
        );
        let Ok(Control::Push(message)) = message else { panic!("{message:?}") };
        assert!(!message.has_bearer());
        let expected = PushMessage {
            push_id: "a&b".into(),
            addresses: vec!["X".into()],
            method: Method::Confirmed,
            deliver_after: Some(30),
            deliver_before: Some(60),
            notify: Some("http://here/".into()),
            bearer: Some("SMS".into()),
        };
        assert_eq!(message, expected);
        assert_eq!(
            read("<cancel-message push-id=\"a\"><address address-value=\"X\"/></cancel-message>"),
            Ok(Control::Cancel { push_id: "a".into() })
        );
        assert_eq!(
            read("<statusquery-message push-id=\"a\"/>"),
            Ok(Control::StatusQuery { push_id: "a".into() })
        );
    }

    #[test]
    fn what_cannot_be_done_has_its_code() {
        for (inside, expected) in [
            ("", code::BAD_REQUEST),
            ("<push-message/>", code::BAD_REQUEST),
            ("<push-message push-id=\"\"/>", code::BAD_REQUEST),
            ("<push-message push-id=\"a\">", code::BAD_REQUEST),
            ("<push-message push-id=\"a\"><address/></push-message>", code::BAD_REQUEST),
            ("<push-message push-id=\"a\" deliver-before-timestamp=\"tomorrow\"/>", code::BAD_REQUEST),
            ("<push-message push-id=\"a\"/><cancel-message push-id=\"b\"/>", code::BAD_REQUEST),
            ("<push-message push-id=\"a\" replace-push-id=\"b\"/>", code::REPLACEMENT_NOT_SUPPORTED),
            ("<ccq-message query-id=\"a\"/>", code::NOT_IMPLEMENTED),
        ] {
            assert_eq!(read(inside).map_err(|(code, _)| code), Err(expected), "{inside}");
        }
        assert_eq!(control(b"").map_err(|(code, _)| code), Err(code::BAD_REQUEST));
        assert_eq!(
            control(b"<pap><push-message push-id='a'>").map_err(|(code, _)| code),
            Err(code::BAD_REQUEST)
        );
    }
}
