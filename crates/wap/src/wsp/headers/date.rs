//! Dates of HTTP <-> seconds since 1970 (RFC 9110, section 5.6.7: three forms are read, the first is written).

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Seconds since the beginning of 1970; `None` if `text` is no date or lies before.
pub(super) fn parse(text: &str) -> Option<u64> {
    // `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`
    let mut words = text.split([' ', '-', ',']).filter(|word| !word.is_empty());
    let mut next = || words.next();
    let (first, second, third) = (next()?, next()?, next()?);
    let (day, month, year, time) = if second.starts_with(|c: char| c.is_ascii_digit()) {
        let (year, time) = (next()?, next()?);
        if !next()?.eq_ignore_ascii_case("GMT") {
            return None;
        }
        (second, third, year, time)
    } else {
        let (time, year) = (next()?, next()?);
        (third, second, year, time)
    };
    if words.next().is_some() || !first.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let month = MONTHS.iter().position(|m| m.eq_ignore_ascii_case(month))? as u64 + 1;
    let day = number(day).filter(|d| (1..=31).contains(d))?;
    let year = match (number(year)?, year.len()) {
        (short, 2) => short + if short < 70 { 2000 } else { 1900 },
        (year, 4) => year,
        _ => return None,
    };
    let mut parts = time.split(':').map(number);
    let (h, m, s) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || h > 23 || m > 59 || s > 60 || year < 1970 {
        return None;
    }
    Some(days(year, month, day) * 86_400 + h * 3600 + m * 60 + s)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|o| o.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Days from 1970-01-01. Years begin in March here, so that the leap day is the last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468
}

/// The first form. Dates beyond the year 9999, which that has no place for, are `None`.
pub(super) fn text(seconds: u64) -> Option<String> {
    let (day_number, time) = (seconds / 86_400, seconds % 86_400);
    let shifted = day_number + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * of_year + 2) / 153;
    let day = of_year - (153 * m + 2) / 5 + 1;
    let month = if m < 10 { m + 3 } else { m - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    if year > 9999 {
        return None;
    }
    let (name, month) = (DAYS[(day_number % 7) as usize], MONTHS[month as usize - 1]);
    Some(format!(
        "{name}, {day:02} {month} {year} {:02}:{:02}:{:02} GMT",
        time / 3600,
        time / 60 % 60,
        time % 60
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_of_the_standards_example() {
        for form in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(form), Some(784_111_777), "{form}");
        }
        assert_eq!(text(784_111_777).as_deref(), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    }

    #[test]
    fn every_day_of_three_centuries_comes_back() {
        for day in 0..110_000 {
            let seconds = day * 86_400 + day % 86_400;
            assert_eq!(parse(&text(seconds).expect("before 9999")), Some(seconds));
        }
        assert_eq!(text(951_782_400).as_deref(), Some("Tue, 29 Feb 2000 00:00:00 GMT"));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for bad in [
            "",
            "now",
            "Sun, 06 Nov 1994",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1960 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "-1",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(text(u64::MAX), None);
    }
}
