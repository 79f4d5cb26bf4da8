//! Pushes reach clients with and without sessions.

use airloom_base::{Duration, Instant};
use airloom_content::markup;
use airloom_content::wbxml::Limits;
use airloom_proxies::wap_gateway::{Config, FetchError, Push, PushError, PushMethod, PushOutcome};
use airloom_transports::wsp::client::Event;
use airloom_transports::wsp::headers::decode_content_type;
use airloom_transports::wsp::initiation::SessionInitiation;
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
        after: None,
        before: None,
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
    let config = Config { session_wait: Duration::ZERO, ..Config::default() };
    let mut pair = Pair::new(config, |_| answer(200, &[], ""));
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

/// Submits a notice under a name of its own, with further attributes of the message.
fn submit(
    pair: &mut Pair,
    push_id: &str,
    address: &str,
    method: &str,
    more: &str,
    content: &str,
) -> (u16, String) {
    let body = format!(
        "--x\r\nContent-Type: application/xml\r\n\r\n<?xml version=\"1.0\"?>\n<pap><push-message push-id=\"{push_id}\" {more}>\
         <address address-value=\"{address}\"/><quality-of-service delivery-method=\"{method}\"/></push-message></pap>\r\n\
         --x\r\nContent-Type: text/vnd.wap.si\r\nX-Wap-Application-Id: wml.ua\r\n\r\n{content}\r\n--x--\r\n"
    );
    let content_type = "multipart/related; boundary=x; type=\"application/xml\"";
    let answer = pair.gateway.handle_pap(pair.now, content_type, &Bytes::from(body));
    (answer.status, answer.body)
}

fn pap(pair: &mut Pair, address: &str, method: &str, content: &str) -> (u16, String) {
    submit(pair, "7@host", address, method, "", content)
}

const HERE: &str = "WAPPUSH=10.0.0.1/TYPE=IPv4@gateway";

/// Asks something about a push, without parts.
fn ask(pair: &mut Pair, what: &str, push_id: &str) -> String {
    let body = format!("<?xml version=\"1.0\"?><pap><{what} push-id=\"{push_id}\"/></pap>");
    let answer = pair.gateway.handle_pap(pair.now, "application/xml; charset=utf-8", &Bytes::from(body));
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body
}

fn has(document: &str, parts: &[&str]) {
    for part in parts {
        assert!(document.contains(part), "{part} is not in {document}");
    }
}

#[test]
fn pap_submits_pushes_and_says_what_is_wrong() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    let here = HERE;
    let (status, body) = pap(&mut pair, here, "unconfirmed", SI);
    assert_eq!(status, 202);
    assert!(body.contains("push-id=\"7@host\"") && body.contains("code=\"1001\""), "{body}");
    pair.run(Duration::from_secs(1), |_| false);
    assert!(matches!(pair.events.pop(), Some(Event::Push { push: None, .. })));
    let (status, body) = pap(&mut pair, here, "unconfirmed", SI);
    assert!(status == 202 && body.contains("code=\"2007\""), "{body}");
    for (n, (address, method, content, code)) in [
        (here, "unconfirmed", "<si>", "3006"),
        ("WAPPUSH=+49170/TYPE=PLMN@gateway", "unconfirmed", SI, "2002"),
        (here, "unconfirmed", &"x".repeat(390_000), "3006"),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, body) = submit(&mut pair, &n.to_string(), address, method, "", content);
        assert!(status == 202 && body.contains(&format!("code=\"{code}\"")), "{body}");
    }
    let refused = pair.gateway.handle_pap(pair.now, "text/plain", &Bytes::from_static(b"x"));
    assert!(
        refused.status == 400 && refused.body.contains("badmessage-response code=\"2000\""),
        "{}",
        refused.body
    );
}

/// The session initiation request in a datagram to the port for pushes.
fn initiation(unit: &Bytes) -> SessionInitiation {
    let Ok(Pdu::Push { confirmed: false, headers, data }) = Pdu::parse(&unit.slice(1..)) else {
        panic!("no push")
    };
    assert_eq!(decode_content_type(&headers).unwrap().0, "application/vnd.wap.sia");
    SessionInitiation::parse(&data).unwrap()
}

#[test]
fn a_client_without_a_session_is_asked_to_open_one_for_a_push_that_it_has_to_confirm() {
    let mut pair = Pair::new(Config::default(), |_| answer(200, &[], ""));
    pair.gateway.set_contact(Some("10.0.0.2:9201".parse().unwrap()));
    let (_, body) = submit(&mut pair, "1", HERE, "confirmed", "", SI);
    has(&body, &["code=\"1001\""]);
    // Nobody listens for the first request; the second one comes, and no third: one is asked for at a time.
    let (_, body) = submit(&mut pair, "2", HERE, "confirmed", "", SI);
    has(&body, &["code=\"1001\""]);
    pair.run(Duration::from_secs(15), |_| false);
    assert_eq!(pair.pushes.len(), 2, "asked again after ten seconds");
    let asked = initiation(&pair.pushes[1]);
    assert_eq!((asked.version, &asked.applications[..]), (0, &["wml.ua".to_owned()][..]));
    assert_eq!(asked.contacts[0].socket(0), "10.0.0.2:9201".parse().ok());
    has(&ask(&mut pair, "statusquery-message", "1"), &["message-state=\"pending\"", "code=\"1001\""]);
    pair.connect(0, &[("Accept", "*/*")]);
    pair.run(Duration::from_secs(1), |pair| pair.events.len() == 2);
    for event in std::mem::take(&mut pair.events) {
        let Event::Push { push: Some(push), .. } = event else { panic!("{event:?}") };
        pair.client.confirm(pair.now, push);
    }
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(outcomes(&mut pair), [PushOutcome::Confirmed; 2]);
    has(
        &ask(&mut pair, "statusquery-message", "2"),
        &["message-state=\"delivered\"", "code=\"1000\"", HERE, "event-time=\"1970-01-01T00:00:15Z\""],
    );
}

#[test]
fn a_client_that_opens_no_session_is_not_waited_for_for_ever() {
    let mut pair = Pair::new(Config::default(), |_| answer(200, &[], ""));
    submit(&mut pair, "1", HERE, "confirmed", "", SI);
    pair.run(Duration::from_secs(300), |_| false);
    assert_eq!(outcomes(&mut pair), [PushOutcome::TimedOut]);
    assert_eq!(pair.pushes.len(), 6, "every ten seconds of the sixty");
    assert!(initiation(&pair.pushes[0]).contacts.is_empty(), "nobody said where");
    has(&ask(&mut pair, "statusquery-message", "1"), &["message-state=\"timeout\"", "code=\"4000\""]);
    assert_eq!((pair.gateway.held(), pair.gateway.poll_timeout()), (0, None));
}

#[test]
fn more_confirmed_pushes_than_agreed_wait_for_their_turn() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    // The client agreed on four.
    for _ in 0..6 {
        pair.gateway.push(pair.now, notice(PushMethod::Confirmed)).unwrap();
    }
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.events.len(), 4);
    for _ in 0..6 {
        let Event::Push { push: Some(push), .. } = pair.events.remove(0) else { panic!("no push") };
        pair.client.confirm(pair.now, push);
        pair.run(Duration::from_secs(1), |_| false);
    }
    assert_eq!((outcomes(&mut pair), pair.events.len()), (vec![PushOutcome::Confirmed; 6], 0));
    assert_eq!(pair.gateway.counters().pushes_confirmed, 6);
}

#[test]
fn pushes_wait_for_their_time_and_go_no_later() {
    let mut pair = Pair::new(Config::default(), |_| answer(200, &[], ""));
    // The calendar of the machine begins in 2002.
    pair.gateway.set_calendar(1_009_843_200);
    let after = "deliver-after-timestamp=\"2002-01-01T00:00:30Z\"";
    submit(&mut pair, "1", HERE, "unconfirmed", after, SI);
    submit(&mut pair, "2", HERE, "confirmed", "deliver-before-timestamp=\"2002-01-01T00:00:05Z\"", SI);
    pair.run(Duration::from_secs(29), |_| false);
    assert_eq!((outcomes(&mut pair), pair.pushes.len()), (vec![PushOutcome::Expired], 1));
    has(&ask(&mut pair, "statusquery-message", "2"), &["message-state=\"expired\""]);
    pair.run(Duration::from_secs(2), |_| false);
    assert_eq!((outcomes(&mut pair), pair.pushes.len()), (vec![PushOutcome::Sent], 2));
    for late in ["2002-01-01T00:00:31Z", "1999-12-31T00:00:00Z"] {
        let before = format!("deliver-before-timestamp=\"{late}\"");
        let (_, body) = submit(&mut pair, late, HERE, "unconfirmed", &before, SI);
        has(&body, &["code=\"2001\""]);
    }
    let past = "deliver-after-timestamp=\"2001-02-28T06:45:00Z\"";
    submit(&mut pair, "3", HERE, "unconfirmed", past, SI);
    assert_eq!(outcomes(&mut pair), [PushOutcome::Sent]);
}

#[test]
fn pushes_are_taken_back_while_they_wait() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], ""));
    let after = "deliver-after-timestamp=\"1970-01-01T01:00:00Z\"";
    submit(&mut pair, "early", HERE, "unconfirmed", after, SI);
    submit(&mut pair, "sent", HERE, "confirmed", "", SI);
    has(&ask(&mut pair, "cancel-message", "early"), &["cancel-result code=\"1000\"", HERE]);
    has(&ask(&mut pair, "cancel-message", "early"), &["code=\"2008\""]);
    has(&ask(&mut pair, "cancel-message", "sent"), &["code=\"2008\""]);
    has(&ask(&mut pair, "cancel-message", "other"), &["code=\"2004\""]);
    has(&ask(&mut pair, "statusquery-message", "early"), &["message-state=\"cancelled\""]);
    has(&ask(&mut pair, "statusquery-message", "other"), &["message-state=\"unknown\"", "code=\"2004\""]);
    assert_eq!(outcomes(&mut pair), [PushOutcome::Cancelled]);
}

#[test]
fn initiators_that_want_to_know_are_told_of_the_end() {
    let mut asked = 0;
    let mut pair = Pair::open(Config::default(), move |_| {
        asked += 1;
        match asked {
            1 => Pair::failing(FetchError::Unreachable),
            2 => answer(503, &[], ""),
            _ => answer(202, &[], "an answer that nobody reads"),
        }
    });
    let notify = "ppg-notify-requested-to=\"http://initiator.example:8080/told\"";
    submit(&mut pair, "1&amp;2", HERE, "confirmed", notify, SI);
    pair.run(Duration::from_secs(1), |pair| !pair.events.is_empty());
    let Some(Event::Push { push: Some(push), .. }) = pair.events.pop() else { panic!("no push") };
    pair.client.refuse(pair.now, push, Reason::UserDiscarded);
    pair.run(Duration::from_secs(60), |_| false);
    assert_eq!(pair.asked.len(), 3, "told again until it is heard");
    let told = &pair.asked[2];
    assert_eq!((told.method.name(), told.url.as_str()), ("POST", "http://initiator.example:8080/told"));
    assert_eq!(told.fields.first("host"), Some(&b"initiator.example:8080"[..]));
    assert_eq!(told.fields.first("content-length"), Some(told.body.len().to_string().as_bytes()));
    let body = String::from_utf8(told.body.to_vec()).unwrap();
    has(
        &body,
        &[
            "resultnotification-message push-id=\"1&amp;2\"",
            "message-state=\"aborted\"",
            "code=\"5029\"",
            HERE,
        ],
    );
    let counters = pair.gateway.counters();
    assert_eq!((counters.notices, counters.notices_failed), (1, 0));
    let soon = Instant::ZERO + Duration::from_secs(600);
    assert!(pair.gateway.poll_timeout().is_none_or(|at| at >= soon));
}

#[test]
fn a_notice_that_nobody_takes_is_dropped() {
    let mut pair = Pair::new(Config::default(), |_| Vec::new());
    for (push_id, to) in [("1", "http://silent.example/"), ("2", "ftp://silent.example/"), ("3", "?")] {
        let notify = format!("ppg-notify-requested-to=\"{to}\"");
        let (_, body) = submit(&mut pair, push_id, HERE, "unconfirmed", &notify, SI);
        has(&body, &[if push_id == "1" { "code=\"1001\"" } else { "code=\"2000\"" }]);
    }
    pair.run(Duration::from_secs(600), |_| false);
    assert_eq!((pair.asked.len(), pair.cancelled.len()), (3, 3));
    assert_eq!(pair.gateway.counters().notices_failed, 1);
    assert_eq!(pair.gateway.poll_timeout(), None);
}

#[test]
fn addresses_of_pushes_are_bounded() {
    let mut pair = Pair::new(Config::default(), |_| answer(200, &[], ""));
    let long = format!("{HERE}{}", "x".repeat(10_000));
    let (status, body) = submit(&mut pair, "1", &long, "confirmed", "", SI);
    assert_eq!(status, 202);
    has(&body, &["code=\"2002\""]);
    let notify = format!("ppg-notify-requested-to=\"http://initiator.example/{}\"", "x".repeat(1_000));
    let (_, body) = submit(&mut pair, "1", HERE, "confirmed", &notify, SI);
    has(&body, &["code=\"2000\""]);
}

#[test]
fn headers_of_pushes_that_wait_count_as_their_content_does() {
    let config = Config { memory: airloom_base::units::Octets(25_000), ..Config::default() };
    let mut pair = Pair::new(config, |_| answer(200, &[], ""));
    let headers = vec![("X-Large".to_owned(), "x".repeat(10_000))];
    for expected in [1, 2] {
        let push = Push { headers: headers.clone(), ..notice(PushMethod::Confirmed) };
        pair.gateway.push(pair.now, push).unwrap();
        assert!(pair.gateway.held() > 10_000 * expected, "{}", pair.gateway.held());
    }
    let push = Push { headers, ..notice(PushMethod::Confirmed) };
    assert_eq!(pair.gateway.push(pair.now, push), Err(PushError::Busy));
    pair.run(Duration::from_secs(300), |_| false);
    assert_eq!((outcomes(&mut pair).len(), pair.gateway.held()), (2, 0));
}

#[test]
fn pushes_that_wait_are_bounded() {
    let config = Config { max_pushes: 3, ..Config::default() };
    let mut pair = Pair::new(config, |_| answer(200, &[], ""));
    for n in 0..3 {
        submit(&mut pair, &n.to_string(), HERE, "confirmed", "", SI);
    }
    let (_, body) = submit(&mut pair, "3", HERE, "confirmed", "", SI);
    has(&body, &["code=\"4001\""]);
    assert_eq!(pair.gateway.push(pair.now, notice(PushMethod::Unconfirmed)), Err(PushError::Busy));
}
