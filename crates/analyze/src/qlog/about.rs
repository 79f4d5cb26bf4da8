//! What a trace says of itself.

use serde_json::Value;

/// Characters of a name that are kept.
pub(super) const LONGEST: usize = 256;

/// What is said of all events of a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(super) title: Option<String>,
    pub(super) host: Option<String>,
    pub(super) vantage: Option<String>,
    pub(super) group: Option<String>,
    /// Are times counted from the event before?
    pub(super) is_delta: bool,
}

pub(super) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.chars().take(LONGEST).collect()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Are times of this format counted from the event before?
pub(super) fn is_delta(format: &Value) -> bool {
    matches!(format.as_str(), Some("delta" | "relative_to_previous_event"))
}

impl About {
    /// Takes in a member of a trace (or of a sequence's header); those of others say nothing here.
    pub(crate) fn take(&mut self, key: &str, value: &Value) {
        match key {
            "title" => self.title = text(Some(value)),
            "vantage_point" => {
                self.host = text(value.get("name"));
                self.vantage = text(value.get("type"));
            }
            "common_fields" => {
                // The name that libraries have for it who do not group.
                let group = ["group_id", "ODCID"].into_iter().find_map(|key| text(value.get(key)));
                self.group = group.or(self.group.take());
                self.is_delta = value.get("time_format").is_some_and(is_delta);
            }
            _ => {}
        }
    }
}
