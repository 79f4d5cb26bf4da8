//! The ways to a scenario.

use super::document::Document;
use super::errors::ScenarioError;
use super::registries::Registries;
use super::schema::Scenario;
use super::tree::{Entry, Kind, Node, Place};

impl Scenario {
    /// The scenario in the text of the file called `name`, checked with what this version of airloom has.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        Document::read(name, text.as_bytes())?.check()
    }

    /// The scenario of `airloom emulate BEARER`, see [`Document::for_bearer`].
    pub fn for_bearer(bearer: &str, settings: &[(String, String)]) -> Result<Scenario, ScenarioError> {
        Document::for_bearer(&Registries::built_in(), bearer, settings)?.check()
    }
}

impl Document {
    /// A real host `mobile` on a link called `link` with this bearer and these of its settings, and behind it the
    /// simulated host `origin`, an `http-server` at 10.77.0.1.
    pub fn for_bearer(
        registries: &Registries,
        bearer: &str,
        settings: &[(String, String)],
    ) -> Result<Document, ScenarioError> {
        let text = |s: &str| Node::new(Kind::String(s.to_owned()), Place::Unknown);
        let table = |entries: Vec<(&str, Node)>| {
            let entry =
                |(key, value): (&str, Node)| Entry { key: key.to_owned(), key_place: Place::Unknown, value };
            Node::new(Kind::Table(entries.into_iter().map(entry).collect()), Place::Unknown)
        };
        let path = ["mobile", "link", "origin"].map(text).to_vec();
        let real = Node::new(Kind::Boolean(true), Place::Unknown);
        let hosts = vec![
            ("mobile", table(vec![("real", real)])),
            ("origin", table(vec![("app", text("http-server"))])),
        ];
        let root = table(vec![
            ("title", text(&bearer.chars().filter(|c| !c.is_control()).take(200).collect::<String>())),
            ("path", Node::new(Kind::List(path), Place::Unknown)),
            ("hosts", table(hosts)),
            ("links", table(vec![("link", table(vec![("bearer", text(bearer))]))])),
        ]);
        let mut document = Document::made(&format!("emulate {bearer}"), root);
        for (key, value) in settings {
            document.set_as(
                registries,
                &format!("--set {key}={value}"),
                &format!("links.link.{key}"),
                value,
            )?;
        }
        Ok(document)
    }
}
