#![no_main]

#[expect(dead_code, reason = "each target uses its own function of these")]
#[path = "../entry.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| entry::matrix(bytes));
