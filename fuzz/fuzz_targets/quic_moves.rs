#![no_main]
libfuzzer_sys::fuzz_target!(|octets: &[u8]| airloom_fuzz_bodies::target("quic_moves")(octets));
