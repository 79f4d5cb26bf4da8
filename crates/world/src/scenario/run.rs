//! `[run]`: how long, from which seed, and what is recorded.

use airloom_base::Duration;

use super::read::{Fault, one_or_more};
use super::schema::{RecordKind, Run, Until};
use super::tree::{Kind, Node, quoted};

pub(super) const RUN_KEYS: &[&str] =
    &["until", "limit", "seed", "record", "points", "epoch", "keep_awake", "lateness_limit"];

/// Patterns of observation points.
const MOST_PATTERNS: usize = 256;

/// Reads `[run]`.
pub(super) fn read(node: Option<&Node>) -> Result<Run, Fault<'_>> {
    let mut run = Run::default();
    let Some(node) = node else { return Ok(run) };
    for entry in node.table("the table of the run", RUN_KEYS)? {
        let value = &entry.value;
        match entry.key.as_str() {
            "until" if value.is_text("done") => run.until = Until::Done,
            "until" if matches!(&value.kind, Kind::String(s) if !s.contains(|c: char| c.is_ascii_digit())) => {
                let message =
                    format!("expected \"done\" or a time such as \"60s\", found {}", value.describe());
                return Err(Fault::at(value, message));
            }
            "until" => run.until = Until::After(positive(value, "\"done\" or a time such as \"60s\"")?),
            "limit" => run.limit = positive(value, "a time such as \"1h\"")?,
            "seed" => run.seed = value.integer(0, u64::MAX)?,
            "record" => run.record = record(value)?,
            "points" => run.points = points(value)?,
            "keep_awake" => run.keep_awake = value.boolean()?,
            "lateness_limit" => {
                run.lateness_limit = Some(positive(value, "a time such as \"500us\" or \"2ms\"")?);
            }
            _ => run.epoch = epoch(value)?,
        }
    }
    if let Until::After(end) = run.until
        && end > run.limit
    {
        match node.get("limit") {
            None => run.limit = end,
            Some(at) => {
                let message = format!("the run ends after {end}, but its limit is {}", run.limit);
                return Err(Fault::at(at, message));
            }
        }
    }
    Ok(run)
}

fn positive<'a>(node: &'a Node, what: &str) -> Result<Duration, Fault<'a>> {
    let time: Duration = node.quantity(what)?;
    if time.is_zero() {
        Err(Fault::at(node, format!("expected {what}, found no time at all")))
    } else {
        Ok(time)
    }
}

fn record(node: &Node) -> Result<Vec<RecordKind>, Fault<'_>> {
    if node.is_text("none") {
        return Ok(Vec::new());
    }
    let mut kinds = Vec::new();
    for item in one_or_more(node) {
        let name = item.text("a kind of record")?;
        let kind = *RecordKind::ALL.iter().find(|k| k.name() == name).ok_or_else(|| {
            let names = RecordKind::ALL.iter().map(|k| k.name()).chain(["none"]);
            match name {
                "none" => Fault::at(item, "`none` stands alone: record = \"none\""),
                _ => Fault::unknown(item, "record", name, names),
            }
        })?;
        Fault::when(kinds.contains(&kind), item, format_args!("`{name}` is asked for twice"))?;
        kinds.push(kind);
    }
    if kinds.contains(&RecordKind::Qlog) {
        // QUIC alone writes events itself; those of TCP, SCTP and RLC are made of these tables afterwards.
        let tables = [RecordKind::Packets, RecordKind::Congestion];
        kinds.extend(tables.into_iter().filter(|table| !kinds.contains(table)).collect::<Vec<_>>());
    }
    Ok(kinds)
}

fn points(node: &Node) -> Result<Option<Vec<String>>, Fault<'_>> {
    const WHAT: &str =
        "names of observation points, `*` standing for any text, such as [\"*.ip\", \"radio.*\"]";
    if matches!(node.kind, Kind::Null) {
        return Ok(None);
    }
    let list = one_or_more(node);
    if list.is_empty() || list.len() > MOST_PATTERNS {
        return Err(Fault::at(node, format!("expected 1 to {MOST_PATTERNS} {WHAT}")));
    }
    let mut patterns = Vec::new();
    for item in list {
        let pattern = item.text(WHAT)?;
        let fine = |b: u8| b.is_ascii_alphanumeric() || b"-_.*[]".contains(&b);
        if pattern.is_empty() || pattern.len() > 200 || !pattern.bytes().all(fine) {
            return Err(Fault::at(item, format!("{} is no name of an observation point", quoted(pattern))));
        }
        patterns.push(pattern.to_owned());
    }
    Ok(Some(patterns))
}

fn epoch(node: &Node) -> Result<u64, Fault<'_>> {
    const WHAT: &str = "a time of day with its zone, such as 2026-01-31T12:00:00Z";
    let text = if let Kind::Datetime(text) = &node.kind { text } else { node.text(WHAT)? };
    parse_epoch(text)
        .ok_or_else(|| Fault::at(node, format!("expected {WHAT}, from 1970 to 2500, found {}", quoted(text))))
}

const DAY: i64 = 86_400;

/// Nanoseconds since 1970 of a time in the form of RFC 3339.
pub(super) fn parse_epoch(text: &str) -> Option<u64> {
    if !text.is_ascii() {
        return None;
    }
    let (date, time) = (text.get(..10)?, text.get(11..)?);
    if !matches!(text.as_bytes()[10], b'T' | b't' | b' ') {
        return None;
    }
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, zone) = time.split_at(time.find(['Z', 'z', '+', '-'])?);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let [hours, minutes] = numbers(&zone[1..], ':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * 60 * if zone.starts_with('-') { -1 } else { 1 }
        }
    };
    let days = [31, year_length(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month_index = usize::try_from(month - 1).ok()?;
    let in_range = (1970..=2500).contains(&year)
        && (1..=*days.get(month_index)?).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range || fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let years: i64 = (1970..year).map(year_length).sum();
    let before: i64 = days[..month_index].iter().sum();
    let seconds = (years + before + day - 1) * DAY + (hour * 60 + minute) * 60 + second - offset;
    let nanos: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}

/// Days of a year of the Gregorian calendar.
fn year_length(year: i64) -> i64 {
    365 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
}

fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut parts = text.split(separator);
    for (number, width) in found.iter_mut().zip(widths) {
        let part = parts.next().filter(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(found)
}

/// The text form of an epoch, in UTC.
pub(super) fn print_epoch(nanos: u64) -> String {
    let (seconds, fraction) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let mut days = (seconds / DAY.unsigned_abs()).cast_signed();
    let time = seconds % DAY.unsigned_abs();
    let mut year = 1970;
    while days >= year_length(year) {
        days -= year_length(year);
        year += 1;
    }
    let mut month = 1;
    for in_month in [31, year_length(year) - 337, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < in_month {
            break;
        }
        days -= in_month;
        month += 1;
    }
    let fraction = match fraction {
        0 => String::new(),
        f => format!(".{f:09}").trim_end_matches('0').to_owned(),
    };
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_read_and_printed_in_utc() {
        for (text, nanos, printed) in [
            ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z"),
            // `date -u -d 2026-11-21T12:00:00+01:00 +%s`
            ("2026-11-21T12:00:00+01:00", 1_795_258_800_000_000_000, "2026-11-21T11:00:00Z"),
            ("2000-02-29 23:59:59.25Z", 951_868_799_250_000_000, "2000-02-29T23:59:59.25Z"),
        ] {
            assert_eq!(parse_epoch(text), Some(nanos), "{text}");
            assert_eq!(print_epoch(nanos), printed);
            assert_eq!(parse_epoch(printed), Some(nanos));
        }
    }

    #[test]
    fn what_is_no_time_of_day_is_no_epoch() {
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T12:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "1970-01-01T00:00:00+01:00",
            "2026-11-21T24:00:00Z",
            "2026-11-21T12:00:00.Z",
            "2026-11-21T12:00:00+1:00",
            "2026-11-21T12:00:0\u{e9}Z",
            "99999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_epoch(text), None, "{text}");
        }
    }
}
