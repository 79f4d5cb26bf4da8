//! Documents that answer an initiator, or tell it of the end of a push.

use std::fmt::Write;

use airloom_content::service::time;
use quick_xml::escape::escape;

use super::submissions::{State, Submission};

/// Type of the documents.
pub const TYPE: &str = "application/xml";

const DOCUMENT: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE pap PUBLIC \"-//WAPFORUM//DTD PAP 1.0//EN\" \
    \"http://www.wapforum.org/DTD/pap_1.0.dtd\">\n";

/// Attributes in order.
struct Attributes(String);

impl Attributes {
    fn new() -> Attributes {
        Attributes(String::new())
    }

    fn with(mut self, name: &str, value: &str) -> Attributes {
        // Writing to a string cannot fail.
        let _ = write!(self.0, " {name}=\"{}\"", escape(value));
        self
    }

    fn result(self, code: u16, words: &str) -> Attributes {
        self.with("code", &code.to_string()).with("desc", words)
    }
}

fn document(inside: &str) -> String {
    format!("{DOCUMENT}<pap>{inside}</pap>\n")
}

fn within(name: &str, attributes: &Attributes, inside: &str) -> String {
    format!("<{name}{}>{inside}</{name}>", attributes.0)
}

fn empty(name: &str, attributes: &Attributes) -> String {
    format!("<{name}{}/>", attributes.0)
}

fn address(value: &str) -> String {
    empty("address", &Attributes::new().with("address-value", value))
}

/// To a push.
pub(super) fn push_response(push_id: &str, at: u64, code: u16, words: &str) -> String {
    let attributes = Attributes::new().with("push-id", push_id).with("reply-time", &time::of_seconds(at));
    let result = empty("response-result", &Attributes::new().result(code, words));
    document(&within("push-response", &attributes, &result))
}

/// To a cancellation.
pub(super) fn cancel_response(push_id: &str, to: Option<&str>, code: u16, words: &str) -> String {
    let result =
        within("cancel-result", &Attributes::new().result(code, words), &to.map(address).unwrap_or_default());
    document(&within("cancel-response", &Attributes::new().with("push-id", push_id), &result))
}

/// To a query; without a submission there is no such push.
pub(super) fn status_response(push_id: &str, known: Option<&Submission>) -> String {
    let result = match known {
        Some(known) => {
            let attributes = Attributes::new()
                .with("event-time", &time::of_seconds(known.event))
                .with("message-state", known.state.into())
                .result(known.code, known.words);
            within("statusquery-result", &attributes, &address(&known.address))
        }
        None => {
            let attributes = Attributes::new()
                .with("message-state", State::Unknown.into())
                .result(super::code::PUSH_ID_NOT_FOUND, "there is no such push");
            empty("statusquery-result", &attributes)
        }
    };
    document(&within("statusquery-response", &Attributes::new().with("push-id", push_id), &result))
}

/// Told to the initiator when a push is over.
pub(super) fn result_notification(push_id: &str, known: &Submission) -> String {
    let attributes = Attributes::new()
        .with("push-id", push_id)
        .with("received-time", &time::of_seconds(known.received))
        .with("event-time", &time::of_seconds(known.event))
        .with("message-state", known.state.into())
        .result(known.code, known.words);
    document(&within("resultnotification-message", &attributes, &address(&known.address)))
}

/// To what could not be read.
pub(super) fn bad_message(code: u16, words: &str) -> String {
    document(&empty("badmessage-response", &Attributes::new().result(code, words)))
}
