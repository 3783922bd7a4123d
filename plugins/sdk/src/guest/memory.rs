//! Where a policy's allocations come from: memory that every instance is born with, and only then memory that it grows.
//!
//! A decision runs in a fresh instance. Where it grows its memory, the host asks the kernel to open pages for it, and to
//! close them again before the next one: each time under a lock of the whole process, so that decisions on several
//! cores wait for each other. Most decisions fit into [`BORN_WITH`].

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::{Cell, UnsafeCell},
    ptr,
};

use dlmalloc::{Allocator, Dlmalloc};

/// Several times what a decision about a hundred messages needs. It is zeros, so it makes no component larger, and a page that is
/// never touched costs nothing.
const BORN_WITH: usize = 1 << 20;

/// A page of WebAssembly.
const PAGE: usize = 64 << 10;

#[global_allocator]
static MEMORY: Memory = Memory(UnsafeCell::new(Dlmalloc::new_with_allocator(Pages { is_used: Cell::new(false) })));

struct Memory(UnsafeCell<Dlmalloc<Pages>>);

// SAFETY: a component has one thread.
unsafe impl Sync for Memory {}

// SAFETY: dlmalloc keeps this contract.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: there is one thread, and nothing in here allocates.
        unsafe { (*self.0.get()).malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { (*self.0.get()).calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above; the caller got it from here.
        unsafe { (*self.0.get()).free(ptr, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe { (*self.0.get()).realloc(ptr, layout.size(), layout.align(), new_size) }
    }
}

#[repr(align(16))]
struct Region(UnsafeCell<[u8; BORN_WITH]>);

// SAFETY: a component has one thread.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([0; BORN_WITH]));

/// Hands out the region once, and then what it grows.
struct Pages {
    is_used: Cell<bool>,
}

// SAFETY: a component has one thread.
unsafe impl Send for Pages {}

// SAFETY: no two answers overlap, and all are zeros: the region as it was born, and pages that were never there before.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        if size <= BORN_WITH && !self.is_used.replace(true) {
            return (REGION.0.get().cast(), BORN_WITH, 0);
        }
        let pages = size.div_ceil(PAGE);
        let before = core::arch::wasm32::memory_grow(0, pages);
        if before == usize::MAX {
            return (ptr::null_mut(), 0, 0);
        }
        // The last byte of the address space is nobody's: no allocation of Rust may end there.
        let (start, size) = (before * PAGE, pages * PAGE);
        let size = if start.wrapping_add(size) == 0 { size - 16 } else { size };
        (ptr::with_exposed_provenance_mut(start), size, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        PAGE
    }
}
