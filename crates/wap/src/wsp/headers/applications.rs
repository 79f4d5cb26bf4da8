//! Applications that a push is for, by number (the registry that WAP-251 begins).

/// Name, number.
#[rustfmt::skip]
pub(super) const APPLICATIONS: &[(&str, u8)] = &[
    ("*", 0x00),
    ("push.sia", 0x01),
    ("wml.ua", 0x02),
    ("wta.ua", 0x03),
    ("mms.ua", 0x04),
    ("push.syncml", 0x05),
    ("loc.ua", 0x06),
    ("syncml.dm", 0x07),
    ("drm.ua", 0x08),
    ("emn.ua", 0x09),
    ("wv.ua", 0x0A),
    ("x-oma-application:ulp.ua", 0x10),
    ("x-oma-application:dlota.ua", 0x11),
    ("x-oma-application:java-ams", 0x12),
    ("x-oma-application:bcast.ua", 0x13),
    ("x-oma-application:dpe.ua", 0x14),
    ("x-oma-application:cpm:ua", 0x15),
    ("x-oma-application:evvm.ua", 0x16),
];

/// Header names of the code page `x-up-1`, as Openwave's phones send them.
#[rustfmt::skip]
pub(super) const X_UP_1: &[(u8, &str)] = &[
    (0x00, "x-up-proxy-push-addr"),
    (0x01, "x-up-proxy-push-accept"),
    (0x02, "x-up-proxy-seq"),
    (0x03, "x-up-proxy-notify"),
    (0x04, "x-up-proxy-operator-domain"),
    (0x05, "x-up-proxy-home-page"),
    (0x06, "x-up-devcap-has-color"),
    (0x07, "x-up-devcap-num-softkeys"),
    (0x08, "x-up-devcap-softkey-size"),
    (0x09, "x-up-devcap-screen-chars"),
    (0x0A, "x-up-devcap-screen-pixels"),
    (0x0B, "x-up-devcap-em-size"),
    (0x0C, "x-up-devcap-screen-depth"),
    (0x0D, "x-up-devcap-immed-alert"),
    (0x0E, "x-up-proxy-net-ask"),
    (0x0F, "x-up-proxy-uplink-version"),
    (0x10, "x-up-proxy-tod"),
    (0x11, "x-up-proxy-ba-enable"),
    (0x12, "x-up-proxy-ba-realm"),
    (0x13, "x-up-proxy-redirect-enable"),
    (0x14, "x-up-proxy-request-uri"),
    (0x15, "x-up-proxy-redirect-status"),
    (0x16, "x-up-proxy-trans-charset"),
    (0x17, "x-up-proxy-linger"),
    (0x18, "x-up-proxy-client-id"),
    (0x19, "x-up-proxy-enable-trust"),
    (0x1A, "x-up-proxy-trust-old"),
    (0x20, "x-up-proxy-trust"),
    (0x21, "x-up-proxy-bookmark"),
    (0x22, "x-up-devcap-gui"),
];
