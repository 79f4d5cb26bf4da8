//! The tokens of WML. All are on code page 0.
//!
//! Source: WAP-191 and WAP-238 (WML 1.1 to 1.3, section on tokens), as other encoders and decoders have them.

/// The first version that has a token: 1 for WML 1.1 and so on.
pub(super) type Since = u8;

/// Elements: code, name, first version.
#[rustfmt::skip]
pub(super) const TAGS: &[(u8, &str, Since)] = &[
    (0x1B, "pre", 2), (0x1C, "a", 1), (0x1D, "td", 1), (0x1E, "tr", 1),
    (0x1F, "table", 1), (0x20, "p", 1), (0x21, "postfield", 1), (0x22, "anchor", 1),
    (0x23, "access", 1), (0x24, "b", 1), (0x25, "big", 1), (0x26, "br", 1),
    (0x27, "card", 1), (0x28, "do", 1), (0x29, "em", 1), (0x2A, "fieldset", 1),
    (0x2B, "go", 1), (0x2C, "head", 1), (0x2D, "i", 1), (0x2E, "img", 1),
    (0x2F, "input", 1), (0x30, "meta", 1), (0x31, "noop", 1), (0x32, "prev", 1),
    (0x33, "onevent", 1), (0x34, "optgroup", 1), (0x35, "option", 1), (0x36, "refresh", 1),
    (0x37, "select", 1), (0x38, "small", 1), (0x39, "strong", 1), (0x3B, "template", 1),
    (0x3C, "timer", 1), (0x3D, "u", 1), (0x3E, "setvar", 1), (0x3F, "wml", 1),
];

/// Attribute starts: code, name, beginning of the value, first version. `ordered`: 0x33 is `true`, as encoders write it;
/// tshark prints the two the other way round.
#[rustfmt::skip]
pub(super) const STARTS: &[(u8, &str, &str, Since)] = &[
    (0x05, "accept-charset", "", 1), (0x06, "align", "bottom", 1), (0x07, "align", "center", 1),
    (0x08, "align", "left", 1), (0x09, "align", "middle", 1), (0x0A, "align", "right", 1),
    (0x0B, "align", "top", 1), (0x0C, "alt", "", 1), (0x0D, "content", "", 1),
    (0x0F, "domain", "", 1), (0x10, "emptyok", "false", 1), (0x11, "emptyok", "true", 1),
    (0x12, "format", "", 1), (0x13, "height", "", 1), (0x14, "hspace", "", 1),
    (0x15, "ivalue", "", 1), (0x16, "iname", "", 1), (0x18, "label", "", 1),
    (0x19, "localsrc", "", 1), (0x1A, "maxlength", "", 1), (0x1B, "method", "get", 1),
    (0x1C, "method", "post", 1), (0x1D, "mode", "nowrap", 1), (0x1E, "mode", "wrap", 1),
    (0x1F, "multiple", "false", 1), (0x20, "multiple", "true", 1), (0x21, "name", "", 1),
    (0x22, "newcontext", "false", 1), (0x23, "newcontext", "true", 1), (0x24, "onpick", "", 1),
    (0x25, "onenterbackward", "", 1), (0x26, "onenterforward", "", 1), (0x27, "ontimer", "", 1),
    (0x28, "optional", "false", 1), (0x29, "optional", "true", 1), (0x2A, "path", "", 1),
    (0x2E, "scheme", "", 1), (0x2F, "sendreferer", "false", 1), (0x30, "sendreferer", "true", 1),
    (0x31, "size", "", 1), (0x32, "src", "", 1), (0x33, "ordered", "true", 1),
    (0x34, "ordered", "false", 1), (0x35, "tabindex", "", 1), (0x36, "title", "", 1),
    (0x37, "type", "", 1), (0x38, "type", "accept", 1), (0x39, "type", "delete", 1),
    (0x3A, "type", "help", 1), (0x3B, "type", "password", 1), (0x3C, "type", "onpick", 1),
    (0x3D, "type", "onenterbackward", 1), (0x3E, "type", "onenterforward", 1), (0x3F, "type", "ontimer", 1),
    (0x45, "type", "options", 1), (0x46, "type", "prev", 1), (0x47, "type", "reset", 1),
    (0x48, "type", "text", 1), (0x49, "type", "vnd.", 1), (0x4A, "href", "", 1),
    (0x4B, "href", "http://", 1), (0x4C, "href", "https://", 1), (0x4D, "value", "", 1),
    (0x4E, "vspace", "", 1), (0x4F, "width", "", 1), (0x50, "xml:lang", "", 1),
    (0x52, "align", "", 1), (0x53, "columns", "", 1), (0x54, "class", "", 1),
    (0x55, "id", "", 1), (0x56, "forua", "false", 1), (0x57, "forua", "true", 1),
    (0x58, "src", "http://", 1), (0x59, "src", "https://", 1), (0x5A, "http-equiv", "", 1),
    (0x5B, "http-equiv", "Content-Type", 1), (0x5C, "content", "application/vnd.wap.wmlc;charset=", 1), (0x5D, "http-equiv", "Expires", 1),
    (0x5E, "accesskey", "", 2), (0x5F, "enctype", "", 2), (0x60, "enctype", "application/x-www-form-urlencoded", 2),
    (0x61, "enctype", "multipart/form-data", 2), (0x62, "xml:space", "preserve", 3), (0x63, "xml:space", "default", 3),
    (0x64, "cache-control", "no-cache", 3),
];

/// Parts of attribute values, in all versions from 1.1.
#[rustfmt::skip]
pub(super) const VALUES: &[(u8, &str)] = &[
    (0x85, ".com/"), (0x86, ".edu/"), (0x87, ".net/"), (0x88, ".org/"), (0x89, "accept"),
    (0x8A, "bottom"), (0x8B, "clear"), (0x8C, "delete"), (0x8D, "help"), (0x8E, "http://"),
    (0x8F, "http://www."), (0x90, "https://"), (0x91, "https://www."), (0x93, "middle"), (0x94, "nowrap"),
    (0x95, "onpick"), (0x96, "onenterbackward"), (0x97, "onenterforward"), (0x98, "ontimer"), (0x99, "options"),
    (0x9A, "password"), (0x9B, "reset"), (0x9D, "text"), (0x9E, "top"), (0x9F, "unknown"),
    (0xA0, "wrap"), (0xA1, "www."),
];
