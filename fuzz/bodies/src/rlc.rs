//! RLC of UMTS.

/// Every parser of RLC acknowledged mode. The first octet chooses the width of length indicators and the PDU size.
pub fn rlc(octets: &[u8]) {
    use airloom_bearers::umts::rlc::am::{AmdHeader, Control, Layout, LiWidth, Sufis};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let _ = AmdHeader::parse(rest);
    let width = if how & 1 == 0 { LiWidth::Seven } else { LiWidth::Fifteen };
    if let Ok(layout) = Layout::parse(rest, 8 + usize::from(how), width) {
        assert!(layout.head_len <= rest.len());
    }
    let _ = Control::parse(rest);
    // Each super-field takes at least four bits, so the list ends.
    assert!(Sufis::of(rest).count() <= rest.len() * 2 + 1);
}
