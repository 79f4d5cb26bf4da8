//! What goes to the gateway, and what its answers say.

use std::net::IpAddr;

use quick_xml::Reader;
use quick_xml::events::Event;

use super::Delivery;

/// What stands between the parts of a message.
const BOUNDARY: &str = "airloom-part";

/// Type of a message with its content.
pub(super) const MESSAGE: &str = "multipart/related; boundary=airloom-part; type=\"application/xml\"";
/// Type of a message without.
pub(super) const QUERY: &str = "application/xml";

const HEAD: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE pap PUBLIC \"-//WAPFORUM//DTD PAP 1.0//EN\" \
    \"http://www.wapforum.org/DTD/pap_1.0.dtd\">\n";

/// A push and its content: a service indication whose text has so many octets.
pub(super) fn push(push_id: &str, client: IpAddr, delivery: Delivery, text: usize) -> String {
    let kind = if client.is_ipv4() { "IPv4" } else { "IPv6" };
    let method = match delivery {
        Delivery::Unconfirmed => "unconfirmed",
        Delivery::Confirmed => "confirmed",
        Delivery::PreferConfirmed => "preferconfirmed",
    };
    let text = "a notice ".chars().cycle().take(text).collect::<String>();
    format!(
        "--{BOUNDARY}\r\nContent-Type: application/xml\r\n\r\n{HEAD}<pap><push-message push-id=\"{push_id}\">\
         <address address-value=\"WAPPUSH={client}/TYPE={kind}@airloom\"/>\
         <quality-of-service delivery-method=\"{method}\"/></push-message></pap>\r\n\
         --{BOUNDARY}\r\nContent-Type: text/vnd.wap.si\r\n\r\n<?xml version=\"1.0\"?>\n\
         <!DOCTYPE si PUBLIC \"-//WAPFORUM//DTD SI 1.0//EN\" \"http://www.wapforum.org/DTD/si.dtd\">\n\
         <si><indication href=\"http://airloom/{push_id}\" si-id=\"{push_id}\">{text}</indication></si>\r\n\
         --{BOUNDARY}--\r\n"
    )
}

/// What became of a push?
pub(super) fn query(push_id: &str) -> String {
    format!("{HEAD}<pap><statusquery-message push-id=\"{push_id}\"/></pap>\n")
}

/// The code of an answer, and the state of the push if it says one.
pub(super) fn answer(document: &str) -> Option<(u16, Option<String>)> {
    let mut reader = Reader::from_str(document);
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                let attribute = |name| {
                    let attribute = tag.try_get_attribute(name).ok().flatten()?;
                    Some(attribute.value.as_ref().to_owned())
                };
                if let Some(code) = attribute("code") {
                    return Some((code.parse().ok()?, attribute("message-state")));
                }
            }
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
