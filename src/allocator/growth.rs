//! How the memory of the module grows. The host makes a new `ArrayBuffer` for each growth, and may then collect garbage,
//! so there should be few.

// An allocator takes raw memory.
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::arch::wasm32::{memory_grow, memory_size};
use std::ptr::{self, NonNull};

use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

/// Bytes of a page of WebAssembly.
const PAGE_SIZE_BYTES: usize = 1 << 16;
/// What the allocator notes beside the blocks, at most.
const NOTES_BYTES: usize = 1024;
/// Memory grows by one part in this many, at least. Memory that is not used takes only addresses.
const SHARE: usize = 32;

/// Memory of the module for an allocator.
#[derive(Debug)]
pub struct Growth {
    /// Where the memory ends that the allocator has.
    end: Option<NonNull<u8>>,
}

impl Growth {
    /// No memory yet.
    pub const NONE: Growth = Growth { end: None };
}

// SAFETY: new pages belong to nobody else, and nothing is allocated here.
unsafe impl Source for Growth {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let needed = (layout.size() + layout.align() + NOTES_BYTES).div_ceil(PAGE_SIZE_BYTES);
        for pages in [needed.max(memory_size::<0>() / SHARE), needed] {
            let before = memory_grow::<0>(pages);
            if before != usize::MAX {
                // The last page of all would end behind the last address.
                let [start, end] = [before, before + pages]
                    .map(|page| ptr::with_exposed_provenance_mut(page.saturating_mul(PAGE_SIZE_BYTES)));
                // What is free at the old end and the new memory become one gap.
                talc.source.end = match talc.source.end.filter(|old| old.as_ptr() == start) {
                    Some(old) => Some(unsafe { talc.extend(old, end) }),
                    None => unsafe { talc.claim(start, pages * PAGE_SIZE_BYTES) },
                };
                return Ok(());
            }
        }
        Err(())
    }
}
