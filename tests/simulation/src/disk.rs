//! A disk that can fail: a layer between SQLite and the real file system.
//!
//! Every connection that is opened in this process uses it; the [`Verdict`] of the calling thread determines what it
//! does, so that each simulated world has its own disk.
#![allow(unsafe_code, reason = "SQLite asks for a file system through pointers")]

use std::{
    cell::RefCell,
    ffi::{CStr, c_char, c_int, c_void},
    mem::size_of,
    ptr::{self, null_mut},
    rc::Rc,
    sync::Once,
};

use rusqlite::ffi::{
    self, SQLITE_FULL, SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ, SQLITE_IOERR_WRITE, SQLITE_OK, sqlite3_file,
    sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
};

/// A file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Read,
    Write,
    Sync,
}

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Fine,
    /// The disk is full.
    Full,
    /// The disk is broken.
    Broken,
}

type Judge = Rc<dyn Fn(Doing) -> Verdict>;

thread_local! {
    static JUDGE: RefCell<Option<Judge>> = const { RefCell::new(None) };
}

/// Makes this thread's disk behave like this, until the returned value is dropped.
pub fn behave(judge: impl Fn(Doing) -> Verdict + 'static) -> Behaving {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(register);
    JUDGE.with(|current| *current.borrow_mut() = Some(Rc::new(judge)));
    Behaving
}

/// Restores the disk's normal behaviour when dropped.
pub struct Behaving;

impl Drop for Behaving {
    fn drop(&mut self) {
        JUDGE.with(|current| *current.borrow_mut() = None);
    }
}

fn verdict(doing: Doing) -> Verdict {
    let judge = JUDGE.with(|current| current.borrow().clone());
    judge.map_or(Verdict::Fine, |judge| judge(doing))
}

/// A file as SQLite sees it: our part first, then the system's part in the same allocation.
#[repr(C)]
struct File {
    methods: *const sqlite3_io_methods,
    /// Only persistent files can fail, not SQLite's temporary files.
    is_kept: bool,
}

/// The size of our part, aligned for the system's part.
const OURS: usize = size_of::<File>().next_multiple_of(16);

unsafe fn theirs(file: *mut sqlite3_file) -> *mut sqlite3_file {
    unsafe { file.cast::<u8>().add(OURS).cast() }
}

unsafe fn is_kept(file: *mut sqlite3_file) -> bool {
    unsafe { (*file.cast::<File>()).is_kept }
}

/// The system's own VFS, below ours.
fn system() -> *mut sqlite3_vfs {
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

fn register() {
    unsafe {
        let system = system();
        assert!(!system.is_null(), "SQLite has a file system");
        let ours = Box::leak(Box::new(*system));
        ours.szOsFile = c_int::try_from(OURS).expect("a small number") + (*system).szOsFile;
        ours.zName = c"simulated".as_ptr();
        ours.pNext = null_mut();
        ours.xOpen = Some(open);
        assert_eq!(ffi::sqlite3_vfs_register(ours, 1), SQLITE_OK, "SQLite takes a file system");
    }
}

unsafe extern "C" fn open(
    _vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    unsafe {
        let system = system();
        let inner = theirs(file);
        let Some(theirs_open) = (*system).xOpen else { return ffi::SQLITE_CANTOPEN };
        let code = theirs_open(system, name, inner, flags, out);
        // SQLite closes a file that has methods, even if opening it failed.
        let methods = if (*inner).pMethods.is_null() { ptr::null() } else { methods_for((*inner).pMethods) };
        let is_kept = !name.is_null() && !CStr::from_ptr(name).to_bytes().is_empty();
        ptr::write(file.cast::<File>(), File { methods, is_kept });
        code
    }
}

/// Our methods, in the version of the system's: an older one has no shared memory.
unsafe fn methods_for(inner: *const sqlite3_io_methods) -> *const sqlite3_io_methods {
    thread_local! {
        static METHODS: RefCell<Vec<(usize, &'static sqlite3_io_methods)>> = const { RefCell::new(Vec::new()) };
    }
    METHODS.with(|known| {
        let mut known = known.borrow_mut();
        if let Some((_, methods)) = known.iter().find(|(of, _)| *of == inner as usize) {
            return ptr::from_ref(*methods);
        }
        let version = unsafe { (*inner).iVersion };
        let methods: &'static sqlite3_io_methods = Box::leak(Box::new(sqlite3_io_methods {
            iVersion: version,
            xClose: Some(close),
            xRead: Some(read),
            xWrite: Some(write),
            xTruncate: Some(truncate),
            xSync: Some(sync),
            xFileSize: Some(file_size),
            xLock: Some(lock),
            xUnlock: Some(unlock),
            xCheckReservedLock: Some(check_reserved_lock),
            xFileControl: Some(file_control),
            xSectorSize: Some(sector_size),
            xDeviceCharacteristics: Some(device_characteristics),
            xShmMap: Some(shm_map),
            xShmLock: Some(shm_lock),
            xShmBarrier: Some(shm_barrier),
            xShmUnmap: Some(shm_unmap),
            xFetch: Some(fetch),
            xUnfetch: Some(unfetch),
        }));
        known.push((inner as usize, methods));
        ptr::from_ref(methods)
    })
}

/// Passes a call on to the system's file.
macro_rules! hand_on {
    ($name:ident, $method:ident $(, $argument:ident: $kind:ty)*) => {
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> c_int {
            unsafe {
                let inner = theirs(file);
                (*(*inner).pMethods).$method.map_or(ffi::SQLITE_ERROR, |call| call(inner $(, $argument)*))
            }
        }
    };
}

hand_on!(close, xClose);
hand_on!(file_size, xFileSize, size: *mut sqlite3_int64);
hand_on!(lock, xLock, level: c_int);
hand_on!(unlock, xUnlock, level: c_int);
hand_on!(check_reserved_lock, xCheckReservedLock, out: *mut c_int);
hand_on!(file_control, xFileControl, op: c_int, argument: *mut c_void);
hand_on!(sector_size, xSectorSize);
hand_on!(device_characteristics, xDeviceCharacteristics);
hand_on!(shm_map, xShmMap, page: c_int, size: c_int, extend: c_int, out: *mut *mut c_void);
hand_on!(shm_lock, xShmLock, offset: c_int, n: c_int, flags: c_int);
hand_on!(shm_unmap, xShmUnmap, delete: c_int);
hand_on!(fetch, xFetch, offset: sqlite3_int64, amount: c_int, out: *mut *mut c_void);
hand_on!(unfetch, xUnfetch, offset: sqlite3_int64, page: *mut c_void);
hand_on!(read_really, xRead, buffer: *mut c_void, amount: c_int, offset: sqlite3_int64);
hand_on!(write_really, xWrite, buffer: *const c_void, amount: c_int, offset: sqlite3_int64);
hand_on!(truncate_really, xTruncate, size: sqlite3_int64);
hand_on!(sync_really, xSync, flags: c_int);

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    unsafe {
        let inner = theirs(file);
        if let Some(call) = (*(*inner).pMethods).xShmBarrier {
            call(inner);
        }
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, buffer: *mut c_void, amount: c_int, offset: sqlite3_int64) -> c_int {
    unsafe {
        match is_kept(file) && verdict(Doing::Read) != Verdict::Fine {
            true => SQLITE_IOERR_READ,
            false => read_really(file, buffer, amount, offset),
        }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    buffer: *const c_void,
    amount: c_int,
    offset: sqlite3_int64,
) -> c_int {
    unsafe {
        match if is_kept(file) { verdict(Doing::Write) } else { Verdict::Fine } {
            Verdict::Fine => write_really(file, buffer, amount, offset),
            Verdict::Full => SQLITE_FULL,
            Verdict::Broken => SQLITE_IOERR_WRITE,
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    unsafe { truncate_really(file, size) }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    unsafe {
        match is_kept(file) && verdict(Doing::Sync) != Verdict::Fine {
            true => SQLITE_IOERR_FSYNC,
            false => sync_really(file, flags),
        }
    }
}
