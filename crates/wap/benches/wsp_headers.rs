//! What it costs to encode and decode a session's headers: `cargo bench -p airloom-wap --bench wsp_headers`.

use airloom_wap::wsp::headers::{Encoder, Pages, decode};
use criterion::{Criterion, criterion_group, criterion_main};

/// A connect request as phones of 1999 sent it.
const CONNECT: &[(&str, &str)] = &[
    (
        "Accept",
        "application/vnd.wap.wmlc, application/vnd.wap.wmlscriptc, image/vnd.wap.wbmp, text/vnd.wap.wml",
    ),
    ("Accept-Charset", "utf-8, iso-8859-1;q=0.5"),
    ("Accept-Language", "en, ja;q=0.8"),
    ("User-Agent", "Phone/1.0"),
];

fn headers(c: &mut Criterion) {
    let encoder = Encoder::default();
    let mut out = Vec::with_capacity(256);
    let mut encode = || {
        out.clear();
        for (name, value) in CONNECT {
            encoder.header(name, value, &mut out).expect("a name");
        }
        out.len()
    };
    let text: usize = CONNECT.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    eprintln!("connect request: {text} octets as text, {} encoded", encode());
    c.bench_function("encode a connect request", |b| b.iter(&mut encode));
    let octets = out.clone();
    c.bench_function("decode a connect request", |b| b.iter(|| decode(&octets, &Pages::new())));
}

criterion_group!(benches, headers);
criterion_main!(benches);
