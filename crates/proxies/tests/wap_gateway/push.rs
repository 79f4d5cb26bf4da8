//! Pushes reach clients with and without sessions.

use airloom_base::Duration;
use airloom_content::markup;
use airloom_content::wbxml::Limits;
use airloom_proxies::wap_gateway::{Config, Push, PushError, PushMethod, PushOutcome};
use airloom_transports::wsp::client::Event;
use airloom_transports::wsp::headers::decode_content_type;
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::Pdu;
use bytes::Bytes;

use crate::pair::{Pair, answer};

const SI: &str =
    "<?xml version=\"1.0\"?><si><indication href=\"http://mail/\" si-id=\"1\">Mail</indication></si>";

fn notice(method: PushMethod) -> Push {
    Push {
        to: "10.0.0.1".parse().unwrap(),
        method,
        content_type: "text/vnd.wap.si".to_owned(),
        headers: vec![("X-Wap-Application-Id".to_owned(), "wml.ua".to_owned())],
        body: Bytes::from_static(SI.as_bytes()),
    }
}

fn outcomes(pair: &mut Pair) -> Vec<PushOutcome> {
    std::iter::from_fn(|| pair.gateway.poll_push()).map(|(_, outcome)| outcome).collect()
}

#[test]
fn a_confirmed_push_is_taken_or_refused_by_the_client() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    for take in [true, false] {
        pair.gateway.push(pair.now, notice(PushMethod::Confirmed)).unwrap();
        pair.run(Duration::from_secs(1), |pair| !pair.events.is_empty());
        let Some(Event::Push { push: Some(push), headers, data }) = pair.events.pop() else {
            panic!("no push")
        };
        assert_eq!(decode_content_type(&headers).unwrap().0, "application/vnd.wap.sic");
        assert!(markup::decompile(&data, Limits::default()).unwrap().contains("Mail"));
        match take {
            true => pair.client.confirm(pair.now, push),
            false => pair.client.refuse(pair.now, push, Reason::UserDiscarded),
        }
        pair.run(Duration::from_secs(1), |_| false);
    }
    let told = outcomes(&mut pair);
    assert_eq!(told, [PushOutcome::Confirmed, PushOutcome::Aborted(Reason::UserDiscarded)]);
}

#[test]
fn without_a_session_a_push_is_one_datagram_and_cannot_be_confirmed() {
    let mut pair = Pair::new(Config::default(), |_| answer(200, &[], ""));
    assert_eq!(pair.gateway.push(pair.now, notice(PushMethod::Confirmed)), Err(PushError::NotPossible));
    pair.gateway.push(pair.now, notice(PushMethod::PreferConfirmed)).unwrap();
    let (_, to, unit) = pair.gateway.poll_transmit().unwrap();
    assert_eq!(to, "10.0.0.1:2948".parse().unwrap());
    assert!(matches!(Pdu::parse(&unit.slice(1..)), Ok(Pdu::Push { confirmed: false, .. })));
    assert_eq!(outcomes(&mut pair), [PushOutcome::Sent]);
    let bad = Push { body: Bytes::from_static(b"<si>"), ..notice(PushMethod::Unconfirmed) };
    assert!(matches!(pair.gateway.push(pair.now, bad), Err(PushError::Content(_))));
    let large = Push {
        content_type: "text/plain".into(),
        body: vec![b'x'; 2_000].into(),
        ..notice(PushMethod::Unconfirmed)
    };
    assert_eq!(pair.gateway.push(pair.now, large), Err(PushError::TooLarge));
}

#[test]
fn a_client_that_is_gone_does_not_confirm() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    pair.fate = Box::new(|_| Vec::new());
    pair.gateway.push(pair.now, notice(PushMethod::Confirmed)).unwrap();
    pair.run(Duration::from_secs(120), |_| false);
    assert_eq!(outcomes(&mut pair), [PushOutcome::Aborted(Reason::NetworkError)]);
}

fn pap(pair: &mut Pair, address: &str, method: &str, content: &str) -> (u16, String) {
    let body = format!(
        "--x\r\nContent-Type: application/xml\r\n\r\n<?xml version=\"1.0\"?>\n<pap><push-message push-id=\"7@host\">\
         <address address-value=\"{address}\"/><quality-of-service delivery-method=\"{method}\"/></push-message></pap>\r\n\
         --x\r\nContent-Type: text/vnd.wap.si\r\nX-Wap-Application-Id: wml.ua\r\n\r\n{content}\r\n--x--\r\n"
    );
    let content_type = "multipart/related; boundary=x; type=\"application/xml\"";
    let answer = pair.gateway.handle_pap(pair.now, content_type, &Bytes::from(body));
    (answer.status, answer.body)
}

#[test]
fn pap_submits_pushes_and_says_what_is_wrong() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    let here = "WAPPUSH=10.0.0.1/TYPE=IPv4@gateway";
    let (status, body) = pap(&mut pair, here, "unconfirmed", SI);
    assert_eq!(status, 202);
    assert!(body.contains("push-id=\"7@host\"") && body.contains("code=\"1001\""), "{body}");
    pair.run(Duration::from_secs(1), |_| false);
    assert!(matches!(pair.events.pop(), Some(Event::Push { push: None, .. })));
    for (address, method, content, code) in [
        (here, "unconfirmed", "<si>", "3006"),
        ("WAPPUSH=+49170/TYPE=PLMN@gateway", "unconfirmed", SI, "2002"),
        ("WAPPUSH=10.9.9.9/TYPE=IPv4@gateway", "confirmed", SI, "3007"),
    ] {
        let (status, body) = pap(&mut pair, address, method, content);
        assert!(status == 202 && body.contains(&format!("code=\"{code}\"")), "{body}");
    }
    let refused = pair.gateway.handle_pap(pair.now, "text/plain", &Bytes::from_static(b"x"));
    assert!(
        refused.status == 400 && refused.body.contains("badmessage-response code=\"2000\""),
        "{}",
        refused.body
    );
}
