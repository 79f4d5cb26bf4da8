//! What runs take of the heap: one program, whose allocator counts.
#![allow(unsafe_code, reason = "a global allocator that counts cannot be written without")]

mod channel;
mod transfers;
mod wap;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what each thread asks of it, and the octets that it holds.
struct Counting;

thread_local! {
    // Of this thread alone: the test's own may still start while the harness goes on.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count(allocations: u64, octets: i64) {
    // A thread that ends may allocate after its counters are gone; nobody asks for those numbers.
    let _ = COUNT.try_with(|n| n.set(n.get() + allocations));
    let _ = HELD.try_with(|n| n.set(n.get() + octets));
}

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations() -> u64 {
    COUNT.get()
}

fn held() -> i64 {
    HELD.get()
}
