use super::*;

#[test]
fn answers_are_read() {
    let pushed = "<?xml version=\"1.0\"?><pap><push-response push-id=\"1\"><response-result code=\"1001\"/></push-response></pap>";
    assert_eq!(documents::answer(pushed), Some((1001, None)));
    let asked = "<pap><statusquery-response push-id=\"1\"><statusquery-result message-state=\"pending\" code=\"1001\">\
        </statusquery-result></statusquery-response></pap>";
    assert_eq!(documents::answer(asked), Some((1001, Some("pending".to_owned()))));
    for bad in ["", "<pap>", "<pap code=\"x\"/>", "no document"] {
        assert_eq!(documents::answer(bad), None, "{bad}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let places = Whereabouts { gateway: "10.0.0.2".parse().unwrap(), client: "10.0.0.1".parse().unwrap() };
    let refused = |config: Config| Initiator::new(config, places).err().map(|e| e.path.join("."));
    assert_eq!(refused(Config::default()), None);
    assert_eq!(
        refused(Config { ask_every: Duration::ZERO, ..Config::default() }).as_deref(),
        Some("ask_every")
    );
    assert_eq!(refused(Config { text: Octets(200_000), ..Config::default() }).as_deref(), Some("text"));
}
