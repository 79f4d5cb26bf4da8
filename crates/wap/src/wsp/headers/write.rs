//! Basic values, to octets (WAP-230, section 8.4.2).

use airloom_wire::uintvar;

/// Short-integer.
pub(super) fn short(n: u8, out: &mut Vec<u8>) {
    out.push(0x80 | n);
}

/// Long-integer: the octets it needs, at least one.
pub(super) fn long(n: u64, out: &mut Vec<u8>) {
    let octets = n.to_be_bytes();
    let first = octets.iter().position(|&o| o != 0).unwrap_or(7);
    out.push((8 - first) as u8);
    out.extend_from_slice(&octets[first..]);
}

/// Integer-value, short if it can be.
pub(super) fn integer(n: u64, out: &mut Vec<u8>) {
    match u8::try_from(n) {
        Ok(n) if n < 128 => short(n, out),
        _ => long(n, out),
    }
}

/// Text-string. What would end it early or is no text is left out.
pub(super) fn text(text: &str, out: &mut Vec<u8>) {
    let text = text.as_bytes();
    if text.first().is_some_and(|&o| o >= 128) {
        out.push(127);
    }
    // A first octet below 32 would be taken for a length.
    out.extend(text.iter().copied().filter(|&o| o >= 32 && o != 127));
    out.push(0);
}

/// Value-length and what `value` writes.
pub(super) fn with_length<T>(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>) -> Option<T>) -> Option<()> {
    let at = out.len();
    out.push(0);
    value(out)?;
    let len = out.len() - at - 1;
    if len <= 30 {
        out[at] = len as u8;
    } else {
        out[at] = 31;
        let mut length = Vec::with_capacity(uintvar::LONGEST);
        uintvar::emit(len as u32, &mut length);
        out.splice(at + 1..at + 1, length);
    }
    Some(())
}
