//! The control functions of the library, which tests call. They are in the `libcuda.so` that the program
//! under test uses, too.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};

use libloading::Library;

/// The control of the fake driver that this process has loaded.
#[derive(Debug)]
pub struct FakeDriver {
    library: Library,
}

/// When queued work runs. All three are legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// When a call waits for it, and no more than that call needs.
    Late,
    /// At once.
    Eager,
    /// At random times, by the seed.
    Random(u64),
}

/// How two devices reach each other's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Peers {
    /// Directly: so it is after a reset.
    Directly = 0,
    /// Not at all.
    None = 1,
    /// Directly, with atomic operations.
    WithAtomics = 2,
}

/// The answer of an injected failure: numbers of `CUresult`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// No code: the call does nothing and reports success.
    Lie = -1,
    /// `CUDA_ERROR_INVALID_VALUE`
    InvalidValue = 1,
    /// `CUDA_ERROR_OUT_OF_MEMORY`
    OutOfMemory = 2,
    /// `CUDA_ERROR_ILLEGAL_ADDRESS`
    IllegalAddress = 700,
    /// `CUDA_ERROR_LAUNCH_FAILED`
    LaunchFailed = 719,
    /// `CUDA_ERROR_UNKNOWN`
    Unknown = 999,
}

/// The objects that the program holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Primary contexts retained.
    pub contexts: u64,
    /// Allocations of device memory.
    pub device_memory: u64,
    /// Allocations of page-locked memory.
    pub pinned_memory: u64,
    /// Streams.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Modules.
    pub modules: u64,
}

impl FakeDriver {
    /// The library that the loader finds first.
    ///
    /// # Panics
    /// If it is not the fake driver.
    pub(crate) fn loaded() -> Self {
        // SAFETY: the loader's path starts with the folder of the fake driver, whose initialisers do nothing.
        let library = unsafe { Library::new("libcuda.so") }.expect("the fake driver is on the loader's path");
        let driver = Self { library };
        driver.reset(1, 64 << 20);
        driver
    }

    /// Resets all state: `devices` devices of `memory_bytes` each, no objects, no injected failure, no
    /// violations. Objects that the program still holds are invalid.
    pub fn reset(&self, devices: u64, memory_bytes: u64) {
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn(u64, u64)>(c"fake_cuda_reset")(devices, memory_bytes) }
    }

    /// Sets how two devices reach each other's memory.
    pub fn peers(&self, devices: [usize; 2], how: Peers) {
        let [from, to] = devices.map(|ordinal| c_int::try_from(ordinal).unwrap_or(-1));
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe {
            self.function::<unsafe extern "C" fn(c_int, c_int, c_int)>(c"fake_cuda_peers")(
                from,
                to,
                how as c_int,
            )
        }
    }

    /// Makes the `nth` call from now (counted from 1) of this name, or of any name, return `code`; if `lost`,
    /// all later calls, too. 0 means never. The name of a kernel stands for its launches, so that with
    /// [`Code::Lie`] the results of one kernel are missing.
    pub fn fail(&self, name: Option<&str>, nth: u64, code: Code, lost: bool) {
        let name = name.map(|name| CString::new(name).expect("a name without zeros"));
        let start = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        type Fail = unsafe extern "C" fn(*const c_char, u64, c_int, c_int);
        // SAFETY: the signature is that of `cuda/control.cpp`; `name` lives until the call is over.
        unsafe { self.function::<Fail>(c"fake_cuda_fail")(start, nth, code as c_int, c_int::from(lost)) }
    }

    /// Makes the `nth` call from now (counted from 1) on this device return `code`; if `lost`, all later
    /// calls on it, too; calls on other devices succeed. Each device may have one such failure. 0 means
    /// never.
    pub fn fail_on(&self, ordinal: usize, nth: u64, code: Code, lost: bool) {
        type FailOn = unsafe extern "C" fn(c_int, u64, c_int, c_int);
        let ordinal = c_int::try_from(ordinal).unwrap_or(-1);
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe {
            self.function::<FailOn>(c"fake_cuda_fail_on")(ordinal, nth, code as c_int, c_int::from(lost))
        }
    }

    /// Calls on this device since the reset.
    pub fn calls_on(&self, ordinal: usize) -> u64 {
        let ordinal = c_int::try_from(ordinal).unwrap_or(-1);
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn(c_int) -> u64>(c"fake_cuda_calls_on")(ordinal) }
    }

    /// How often the injected failure has happened.
    pub fn failures(&self) -> u64 {
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn() -> u64>(c"fake_cuda_failures")() }
    }

    /// Sets when queued work runs from now on.
    pub fn order(&self, order: Order) {
        let (number, seed) = match order {
            Order::Late => (0, 0),
            Order::Eager => (1, 0),
            Order::Random(seed) => (2, seed),
        };
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn(c_int, u64)>(c"fake_cuda_order")(number, seed) }
    }

    /// From now on, closes page-locked memory to the host while a copy of it is queued. An access then kills
    /// the process at that instruction, even if the data would be right.
    pub fn guard(&self, guarding: bool) {
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn(c_int)>(c"fake_cuda_guard")(c_int::from(guarding)) }
    }

    /// Calls of this name since the reset, or of all names.
    pub fn calls(&self, name: Option<&str>) -> u64 {
        let name = name.map(|name| CString::new(name).expect("a name without zeros"));
        let start = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
        // SAFETY: the signature is that of `cuda/control.cpp`; `name` lives until the call is over.
        unsafe { self.function::<unsafe extern "C" fn(*const c_char) -> u64>(c"fake_cuda_calls")(start) }
    }

    /// The objects that the program holds now.
    pub fn live(&self) -> Live {
        Live {
            contexts: self.count(c"contexts"),
            device_memory: self.count(c"device memory"),
            pinned_memory: self.count(c"pinned memory"),
            streams: self.count(c"streams"),
            events: self.count(c"events"),
            modules: self.count(c"modules"),
        }
    }

    /// The most bytes of a device's memory that were allocated at one time.
    pub fn peak_bytes(&self, ordinal: usize) -> u64 {
        let ordinal = c_int::try_from(ordinal).unwrap_or(-1);
        // SAFETY: the signature is that of `cuda/control.cpp`.
        unsafe { self.function::<unsafe extern "C" fn(c_int) -> u64>(c"fake_cuda_peak_bytes")(ordinal) }
    }

    /// Violations: misuse that a real driver need not detect.
    pub fn violations(&self) -> Vec<String> {
        type Violation = unsafe extern "C" fn(u64) -> *const c_char;
        (0..)
            .map_while(|index| {
                // SAFETY: the signature is that of `cuda/control.cpp`.
                let text = unsafe { self.function::<Violation>(c"fake_cuda_violation")(index) };
                // SAFETY: not null, so a text that stays until the next reset; it is copied here.
                (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
            })
            .collect()
    }

    /// Asserts that the program holds no objects and made no violations.
    ///
    /// # Panics
    /// If it does.
    pub fn assert_clean(&self, when: &str) {
        assert_eq!(self.violations(), Vec::<String>::new(), "{when}");
        assert_eq!(self.live(), Live::default(), "leaked: {when}");
    }

    fn count(&self, kind: &CStr) -> u64 {
        type Count = unsafe extern "C" fn(*const c_char) -> u64;
        // SAFETY: the signature is that of `cuda/control.cpp`; `kind` is a constant.
        unsafe { self.function::<Count>(c"fake_cuda_live")(kind.as_ptr()) }
    }

    /// # Safety
    /// `F` must be the type of the function of that name.
    unsafe fn function<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the caller guarantees the type; the library stays loaded as long as `self`.
        let found = unsafe { self.library.get::<F>(name) };
        *found.unwrap_or_else(|e| panic!("{name:?}: not the fake driver: {e}"))
    }
}
