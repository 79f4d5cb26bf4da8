//! Applications in whole networks.

use airloom_base::{Duration, Summary};
use airloom_drive::virtual_time::{self, Outcome, Until};
use airloom_world::Builder;
use serde_json::{Value, json};

fn unreachable(app: &str, config: &Value) -> Summary {
    let mut b = Builder::new(1);
    let (client, server) = (b.host("client"), b.host("server"));
    b.link("wire", "wireline", &json!({}), &[client], server).unwrap();
    b.app(client, app, config, Some("server")).unwrap();
    let mut world = b.build().unwrap();
    let limit = Until::Done { limit: Duration::from_secs(60) };
    assert_eq!(virtual_time::run(&mut world, limit, |_, _| true), Outcome::Complete);
    world.summary()
}

#[test]
fn an_application_that_cannot_reach_its_server_fails_and_is_done() {
    let nowhere = "192.0.2.9";
    let bulk = unreachable("bulk", &json!({ "server": nowhere, "repeat": 3, "parallel": 2 }));
    assert_eq!((bulk.values["transfers"], bulk.values["transfers_failed"]), (0.0, 3.0));
    let http = unreachable("http-client", &json!({ "server": nowhere, "objects": ["/1", "/2", "/3"] }));
    assert_eq!((http.values["objects"], http.values["failed"]), (0.0, 3.0));
    let ping = unreachable("ping", &json!({ "server": nowhere, "count": 2, "timeout": "1s" }));
    assert_eq!((ping.values["received"], ping.values["client.lost"]), (0.0, 2.0));
}
