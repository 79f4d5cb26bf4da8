//! What it costs to compile a deck: `cargo bench -p airloom-content --bench wml`.

use airloom_content::markup;
use airloom_content::wbxml::{Limits, Options};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// A deck of about `size` octets of prose: sentences of words from a vocabulary of a thousand, the early ones more often, as
/// in any language. A fixed sequence.
fn prose(size: usize) -> String {
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let syllables = [
        "ka", "mi", "dor", "ren", "um", "pel", "sho", "ter", "qua", "gri", "ist", "bo", "ve", "nu", "fen",
        "lo",
    ];
    let mut word = |_| (0..1 + random(4)).map(|_| syllables[random(16) as usize]).collect::<String>();
    let words: Vec<String> = (0..1000).map(&mut word).collect();
    let mut deck = String::from(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE wml PUBLIC \"-//WAPFORUM//DTD WML 1.1//EN\" \
         \"http://www.wapforum.org/DTD/wml_1.1.xml\">\n<wml>\n<card id=\"c\">\n<p>\n",
    );
    while deck.len() < size {
        for _ in 0..6 + random(9) {
            // Of two draws the lower, twice: frequent words are frequent.
            let n = (random(1000) * random(1000) / 1000 * random(1000) / 1000) as usize;
            deck.push_str(&words[n]);
            deck.push(' ');
        }
        deck.pop();
        deck.push_str(".<br/>\n");
    }
    deck + "</p>\n</card>\n</wml>\n"
}

fn decks(c: &mut Criterion) {
    let mut group = c.benchmark_group("wml");
    for size in [1000, 20_000, 360_000] {
        let deck = prose(size);
        let parsed = markup::parse(deck.as_bytes(), None).expect("a deck");
        let octets = markup::compile(deck.as_bytes(), None, None).expect("a deck").octets;
        eprintln!("prose of {} octets: {} compiled", deck.len(), octets.len());
        group.throughput(Throughput::Bytes(deck.len() as u64));
        group.bench_function(format!("parse {size}"), |b| b.iter(|| markup::parse(deck.as_bytes(), None)));
        group.bench_function(format!("encode {size}"), |b| {
            b.iter(|| markup::encode(&parsed.document, Options::default()))
        });
        group.bench_function(format!("compile {size}"), |b| {
            b.iter(|| markup::compile(deck.as_bytes(), None, None))
        });
        group.bench_function(format!("decode {size}"), |b| {
            b.iter(|| markup::decode(&octets, Limits::default()))
        });
    }
    group.finish();
}

criterion_group!(benches, decks);
criterion_main!(benches);
