//! Character sets by their IANA number (MIBenum), which WSP headers and WBXML documents carry instead of a name.
//!
//! Names are the registry's preferred MIME names; other names of the same set are understood when reading.

/// A character set's number in the IANA registry.
pub type MibEnum = u32;

/// US-ASCII.
pub const US_ASCII: MibEnum = 3;
/// ISO-8859-1.
pub const ISO_8859_1: MibEnum = 4;
/// UTF-8.
pub const UTF_8: MibEnum = 106;
/// ISO-10646-UCS-2.
pub const UCS_2: MibEnum = 1000;
/// UTF-16BE.
pub const UTF_16BE: MibEnum = 1013;
/// UTF-16LE.
pub const UTF_16LE: MibEnum = 1014;
/// UTF-16: big-endian unless a byte order mark says otherwise.
pub const UTF_16: MibEnum = 1015;

/// The sets that WAP software knows, by number; source: IANA character sets, the part that Kannel and Wireshark list.
const SETS: &[(MibEnum, &str)] = &[
    (US_ASCII, "us-ascii"),
    (ISO_8859_1, "iso-8859-1"),
    (5, "iso-8859-2"),
    (6, "iso-8859-3"),
    (7, "iso-8859-4"),
    (8, "iso-8859-5"),
    (9, "iso-8859-6"),
    (10, "iso-8859-7"),
    (11, "iso-8859-8"),
    (12, "iso-8859-9"),
    (13, "iso-8859-10"),
    (17, "shift_jis"),
    (18, "euc-jp"),
    (37, "iso-2022-kr"),
    (38, "euc-kr"),
    (39, "iso-2022-jp"),
    (40, "iso-2022-jp-2"),
    (UTF_8, "utf-8"),
    (109, "iso-8859-13"),
    (110, "iso-8859-14"),
    (111, "iso-8859-15"),
    (112, "iso-8859-16"),
    (113, "gbk"),
    (114, "gb18030"),
    (UCS_2, "iso-10646-ucs-2"),
    (1012, "utf-7"),
    (UTF_16BE, "utf-16be"),
    (UTF_16LE, "utf-16le"),
    (UTF_16, "utf-16"),
    (2025, "gb2312"),
    (2026, "big5"),
    (2027, "macintosh"),
    (2084, "koi8-r"),
    (2086, "ibm866"),
    (2088, "koi8-u"),
    (2101, "big5-hkscs"),
    (2109, "windows-874"),
    (2250, "windows-1250"),
    (2251, "windows-1251"),
    (2252, "windows-1252"),
    (2253, "windows-1253"),
    (2254, "windows-1254"),
    (2255, "windows-1255"),
    (2256, "windows-1256"),
    (2257, "windows-1257"),
    (2258, "windows-1258"),
];

/// Other names that documents and headers use.
const ALIASES: &[(&str, MibEnum)] = &[
    ("ascii", US_ASCII),
    ("latin1", ISO_8859_1),
    ("iso_8859-1", ISO_8859_1),
    ("l1", ISO_8859_1),
    ("utf8", UTF_8),
    ("ucs-2", UCS_2),
    ("sjis", 17),
    ("x-sjis", 17),
    ("ms_kanji", 17),
    ("ks_c_5601-1987", 38),
    ("x-gbk", 113),
    ("cp866", 2086),
    ("cp1251", 2251),
    ("cp1252", 2252),
];

/// The preferred name of `mib`, in lower case.
pub fn name(mib: MibEnum) -> Option<&'static str> {
    SETS.binary_search_by_key(&mib, |set| set.0).ok().map(|at| SETS[at].1)
}

/// The number of the set that is called `name`, in any case.
pub fn mib_enum(name: &str) -> Option<MibEnum> {
    let name = name.trim();
    let known = SETS.iter().find(|set| set.1.eq_ignore_ascii_case(name)).map(|set| set.0);
    known.or_else(|| ALIASES.iter().find(|alias| alias.0.eq_ignore_ascii_case(name)).map(|alias| alias.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_every_name_leads_back() {
        assert!(SETS.is_sorted_by(|a, b| a.0 < b.0), "looked up by bisection");
        for &(mib, preferred) in SETS {
            assert_eq!(name(mib), Some(preferred));
            assert_eq!(mib_enum(&preferred.to_uppercase()), Some(mib));
        }
        assert_eq!(mib_enum("Latin1"), Some(ISO_8859_1));
        assert_eq!((name(1), mib_enum("no-such-set")), (None, None));
    }
}
