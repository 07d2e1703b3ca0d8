//! Small blocks of memory, in pages of blocks of one size. Most allocations are small and short: keys of groups, names of
//! fields, rows on their way. A general allocator joins each freed block with its neighbours, and cuts the next one off
//! again. Here, a freed block is the next one that is allocated. A page without blocks in use is spare: it serves blocks of
//! any size.

// An allocator hands out raw memory.
#![allow(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod growth;

#[cfg(target_arch = "wasm32")]
pub use growth::Growth;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ptr;

/// The sizes of blocks are multiples of this; they are aligned to it, too.
const STEP: usize = 16;
/// The number of sizes.
const SIZES: usize = 16;
/// Pages are aligned to this, so the page of a block is found by its address.
const PAGE: usize = 4096;
/// Pages are taken from the source by this many. For a single one, the source would try all gaps of about its size until one
/// contains such an address.
const PAGES: usize = 16;
/// Bytes of a page. The source has the rest of the last one for its own notes, so that what it hands out can be neighbours.
const PAGE_SIZE_BYTES: usize = PAGE - 16;
/// The first block of a page is behind its header.
const FIRST: usize = size_of::<MemoryPage>().next_multiple_of(STEP);

/// The header of a page. While it has room, it is in the list of its size.
struct MemoryPage {
    next: *mut MemoryPage,
    before: *mut MemoryPage,
    /// The freed block to use next. Each freed block begins with the address of another one.
    free: *mut u8,
    /// Where the blocks begin that were never used.
    fresh: usize,
    /// The number of blocks in use.
    used: usize,
}

impl MemoryPage {
    const NEW: MemoryPage =
        MemoryPage { next: ptr::null_mut(), before: ptr::null_mut(), free: ptr::null_mut(), fresh: FIRST, used: 0 };

    fn is_full(&self, size: usize) -> bool {
        self.free.is_null() && self.fresh + size > PAGE_SIZE_BYTES
    }
}

/// An allocator for a single thread. Large blocks, and pages for small ones, come from another allocator.
pub struct SmallBlocks<A> {
    source: A,
    /// By size, the pages with room.
    lists: [Cell<*mut MemoryPage>; SIZES],
    /// The pages without blocks in use.
    spare: Cell<*mut MemoryPage>,
}

// SAFETY: without atomics, WebAssembly has a single thread.
#[cfg(all(target_arch = "wasm32", not(target_feature = "atomics")))]
unsafe impl<A: Sync> Sync for SmallBlocks<A> {}

impl<A: GlobalAlloc> SmallBlocks<A> {
    const LAYOUT: Layout = match Layout::from_size_align((PAGES - 1) * PAGE + PAGE_SIZE_BYTES, PAGE) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    };

    /// An allocator without pages.
    pub const fn new(source: A) -> SmallBlocks<A> {
        SmallBlocks { source, lists: [const { Cell::new(ptr::null_mut()) }; SIZES], spare: Cell::new(ptr::null_mut()) }
    }

    /// The list of pages for `layout`, and the size of their blocks; `None` if it is too large.
    fn list(&self, layout: &Layout) -> Option<(&Cell<*mut MemoryPage>, usize)> {
        let number = layout.size().wrapping_sub(1) / STEP;
        let list = self.lists.get(number).filter(|_| layout.align() <= STEP)?;
        Some((list, (number + 1) * STEP))
    }

    /// Puts a page with room in front of its list.
    ///
    /// # Safety
    /// The page is one of this allocator, and in no list.
    unsafe fn link(list: &Cell<*mut MemoryPage>, page: *mut MemoryPage) {
        unsafe {
            let next = list.replace(page);
            (*page).next = next;
            (*page).before = ptr::null_mut();
            if !next.is_null() {
                (*next).before = page;
            }
        }
    }

    /// Takes a page out of its list.
    ///
    /// # Safety
    /// The page is in that list.
    unsafe fn unlink(list: &Cell<*mut MemoryPage>, page: *mut MemoryPage) {
        unsafe {
            let MemoryPage { next, before, .. } = *page;
            if before.is_null() {
                list.set(next);
            } else {
                (*before).next = next;
            }
            if !next.is_null() {
                (*next).before = before;
            }
        }
    }

    /// Takes a spare page; null if there is none, and the source has none either.
    #[cold]
    #[inline(never)]
    fn page(&self, list: &Cell<*mut MemoryPage>) -> *mut MemoryPage {
        // SAFETY: the size is not zero, and all pages are in what the source gave.
        unsafe {
            if self.spare.get().is_null() {
                let pages = self.source.alloc(Self::LAYOUT);
                // The first page will be in front.
                for number in (0..PAGES).rev().filter(|_| !pages.is_null()) {
                    let page = pages.add(number * PAGE).cast::<MemoryPage>();
                    page.write(MemoryPage::NEW);
                    Self::link(&self.spare, page);
                }
            }
            let page = self.spare.get();
            if !page.is_null() {
                Self::unlink(&self.spare, page);
                page.write(MemoryPage::NEW);
                Self::link(list, page);
            }
            page
        }
    }
}

// SAFETY: a block of a page is handed out once until it is freed, and is as large as its list says. All else is the
// source's. `list` depends on the layout alone, so a block is freed where it was allocated.
unsafe impl<A: GlobalAlloc> GlobalAlloc for SmallBlocks<A> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe {
            let Some((list, size)) = self.list(&layout) else { return self.source.alloc(layout) };
            let mut page = list.get();
            if page.is_null() {
                page = self.page(list);
                if page.is_null() {
                    return ptr::null_mut();
                }
            }
            let mut block = (*page).free;
            if block.is_null() {
                block = page.cast::<u8>().add((*page).fresh);
                (*page).fresh += size;
            } else {
                (*page).free = block.cast::<*mut u8>().read();
            }
            (*page).used += 1;
            if (*page).is_full(size) {
                Self::unlink(list, page);
            }
            block
        }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe {
            let Some((list, size)) = self.list(&layout) else { return self.source.dealloc(block, layout) };
            let page = block.map_addr(|address| address & !(PAGE - 1)).cast::<MemoryPage>();
            if (*page).is_full(size) {
                Self::link(list, page);
            }
            block.cast::<*mut u8>().write((*page).free);
            (*page).free = block;
            (*page).used -= 1;
            // One page of each size stays, in case that the next block is of that size.
            if (*page).used == 0 && !((*page).next.is_null() && (*page).before.is_null()) {
                Self::unlink(list, page);
                Self::link(&self.spare, page);
            }
        }
    }

    #[inline(never)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        unsafe {
            let new = Layout::from_size_align_unchecked(new_size, layout.align());
            match (self.list(&layout), self.list(&new)) {
                (None, None) => return self.source.realloc(block, layout, new_size),
                (Some((_, old)), Some((_, new))) if old == new => return block,
                _ => {}
            }
            let moved = self.alloc(new);
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Checks that blocks are given back as they were taken.
    #[derive(Default)]
    struct Checked {
        taken: RefCell<BTreeMap<usize, Layout>>,
    }

    unsafe impl GlobalAlloc for Checked {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let block = unsafe { System.alloc(layout) };
            assert!(self.taken.borrow_mut().insert(block.addr(), layout).is_none());
            block
        }

        unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
            assert_eq!(self.taken.borrow_mut().remove(&block.addr()), Some(layout));
            unsafe { System.dealloc(block, layout) }
        }
    }

    impl SmallBlocks<Checked> {
        fn taken_bytes(&self) -> usize {
            self.source.taken.borrow().values().map(Layout::size).sum()
        }
    }

    /// A block in use: where it is, its layout, and the byte that fills it.
    struct Used(*mut u8, Layout, u8);

    impl Used {
        fn fill(&self) {
            unsafe { self.0.write_bytes(self.2, self.1.size()) }
        }

        fn check(&self, len: usize) {
            assert!(self.0.addr().is_multiple_of(self.1.align()));
            assert!((0..len).all(|at| unsafe { self.0.add(at).read() } == self.2));
        }
    }

    fn layout(size: usize, align: u32) -> Layout {
        Layout::from_size_align(size, 1 << align).unwrap()
    }

    proptest! {
        #[test]
        fn blocks_keep_their_bytes_until_they_are_freed_or_moved(
            steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), 1..600_usize, 0..6_u32), 1..400),
        ) {
            let memory = SmallBlocks::new(Checked::default());
            let mut used: Vec<Used> = Vec::new();
            for (number, (step, which, size, align)) in steps.into_iter().enumerate() {
                match step {
                    0 if !used.is_empty() => {
                        let one = used.swap_remove(which.index(used.len()));
                        one.check(one.1.size());
                        unsafe { memory.dealloc(one.0, one.1) };
                    }
                    1 if !used.is_empty() => {
                        let place = which.index(used.len());
                        let Used(block, old, byte) = used[place];
                        let moved = unsafe { memory.realloc(block, old, size) };
                        let new = Layout::from_size_align(size, old.align()).unwrap();
                        Used(moved, new, byte).check(size.min(old.size()));
                        used[place] = Used(moved, new, byte);
                        used[place].fill();
                    }
                    _ => {
                        let of = layout(size, align);
                        let one = Used(unsafe { memory.alloc(of) }, of, number as u8);
                        one.fill();
                        used.push(one);
                    }
                }
            }
            for one in used.drain(..) {
                one.check(one.1.size());
                unsafe { memory.dealloc(one.0, one.1) };
            }
            prop_assert!(memory.taken_bytes().is_multiple_of(SmallBlocks::<Checked>::LAYOUT.size()), "only pages are left");
        }
    }

    #[test]
    fn a_freed_block_is_the_next_one_of_its_size() {
        let memory = SmallBlocks::new(Checked::default());
        unsafe {
            let [first, other] = [memory.alloc(layout(17, 0)), memory.alloc(layout(33, 0))];
            memory.dealloc(first, layout(17, 0));
            assert_eq!(memory.alloc(layout(32, 3)), first);
            assert_ne!(memory.alloc(layout(32, 3)), first);
            assert_eq!(memory.realloc(other, layout(33, 0), 48), other);
            assert_ne!(memory.realloc(other, layout(48, 0), 49), other);
            assert_eq!(memory.alloc(layout(40, 2)), other);
        }
    }

    #[test]
    fn pages_without_blocks_in_use_serve_blocks_of_other_sizes() {
        let memory = SmallBlocks::new(Checked::default());
        for size in [256_usize, 100, 16, 1, 256, 257, 5000] {
            let count = 1_000_000 / size.next_multiple_of(STEP);
            let blocks: Vec<*mut u8> = (0..count).map(|_| unsafe { memory.alloc(layout(size, 0)) }).collect();
            assert!(memory.taken_bytes() >= count * size);
            // Every second block first, so that each page is partly in use for a while.
            let halves = [0, 1].map(|half| blocks.iter().skip(half).step_by(2));
            halves.into_iter().flatten().for_each(|block| unsafe { memory.dealloc(*block, layout(size, 0)) });
            assert!(memory.taken_bytes() < 1_250_000, "{size}");
        }
    }

    #[test]
    fn without_memory_an_allocation_fails_and_what_is_in_use_stays() {
        struct Few(Cell<usize>);
        unsafe impl GlobalAlloc for Few {
            unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
                self.0.set(self.0.get().saturating_sub(1));
                if self.0.get() == 0 { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
            }
            unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
                unsafe { System.dealloc(block, layout) }
            }
        }
        let memory = SmallBlocks::new(Few(Cell::new(2)));
        let of = layout(200, 0);
        let blocks: Vec<*mut u8> =
            (0..1000).map(|_| unsafe { memory.alloc(of) }).take_while(|block| !block.is_null()).collect();
        assert_eq!(blocks.len(), (PAGE_SIZE_BYTES - FIRST) / 208 * PAGES);
        let used = Used(blocks[0], of, 7);
        used.fill();
        assert!(unsafe { memory.realloc(used.0, of, 300).is_null() && memory.alloc(of).is_null() });
        used.check(200);
        unsafe { memory.dealloc(blocks[1], of) };
        assert_eq!(unsafe { memory.alloc(of) }, blocks[1]);
    }
}
