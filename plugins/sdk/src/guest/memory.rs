//! The allocator of a policy: uses memory that every instance starts with, and grows it only when that is used up.
//!
//! A decision runs in a fresh instance. When it grows its memory, the host asks the kernel to make pages accessible,
//! and to revoke that again before the next instance: each time under a lock of the whole process, so that decisions on
//! several cores wait for each other. Most decisions fit into [`BORN_WITH`].

use std::{
    alloc::{GlobalAlloc, Layout},
    cell::{Cell, UnsafeCell},
    ptr,
};

use dlmalloc::{Allocator, Dlmalloc};

/// Several times what a decision about a hundred messages needs. It is zero-initialised, so it does not make the
/// component larger, and a page that is never touched costs nothing.
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
        // SAFETY: as above; the caller got the pointer from this allocator.
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

/// Allocates the region once, and after that grown memory.
struct Pages {
    is_used: Cell<bool>,
}

// SAFETY: a component has one thread.
unsafe impl Send for Pages {}

// SAFETY: no two allocations overlap, and all are zero: the initial region, and newly grown pages.
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
        // The last byte of the address space must stay unused: no Rust allocation may end there.
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
