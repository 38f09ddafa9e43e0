//! The faults of a region by `userfaultfd(2)`: faults of user mode only, which needs no privilege.
//! Where the system call is forbidden, as in many containers, the device gives the same (Linux 6.1), to a
//! process that may open it.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

/// `UFFD_USER_MODE_ONLY`, since Linux 5.11.
const USER_MODE_ONLY: u32 = 1;
const GROUP: u8 = 0xAA;
const API: u64 = 0xAA;
const MODE_MISSING: u64 = 1;
const EVENT_PAGE_FAULT: u8 = 0x12;
/// Bytes of `struct uffd_msg`, and where its address is.
const MESSAGE_BYTES: usize = 32;
const ADDRESS_BYTES: Range<usize> = 16..24;

#[repr(C)]
struct ApiArguments {
    api: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct RangeArguments {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct RegisterArguments {
    range: RangeArguments,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct CopyArguments {
    to: u64,
    from: u64,
    bytes: u64,
    mode: u64,
    copied: i64,
}

/// The device that gives what the system call gives.
pub(super) const DEVICE: &str = "/dev/userfaultfd";

const IOCTL_NEW: Opcode = opcode::none(GROUP, 0);
const IOCTL_API: Opcode = opcode::read_write::<ApiArguments>(GROUP, 0x3F);
const IOCTL_REGISTER: Opcode = opcode::read_write::<RegisterArguments>(GROUP, 0);
const IOCTL_WAKE: Opcode = opcode::read::<RangeArguments>(GROUP, 2);
const IOCTL_COPY: Opcode = opcode::read_write::<CopyArguments>(GROUP, 3);

/// Asks the device for a descriptor, with the flags of the system call.
struct NewDescriptor(UserfaultfdFlags);

// SAFETY: the opcode takes flags in place of a pointer, changes no memory, and gives a new descriptor.
unsafe impl Ioctl for NewDescriptor {
    type Output = OwnedFd;
    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        IOCTL_NEW
    }

    fn as_ptr(&mut self) -> *mut c_void {
        ptr::without_provenance_mut(self.0.bits() as usize)
    }

    unsafe fn output_from_ptr(out: IoctlOutput, _: *mut c_void) -> Result<OwnedFd, Errno> {
        // SAFETY: the kernel's answer is a descriptor that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(out) })
    }
}

fn flags() -> UserfaultfdFlags {
    UserfaultfdFlags::CLOEXEC
        | UserfaultfdFlags::NONBLOCK
        | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY)
}

/// A descriptor of faults. It is used for memory that one region owns.
pub(super) struct Userfault(OwnedFd);

impl Userfault {
    /// By the system call, else by the device.
    ///
    /// # Errors
    /// The system call's.
    pub fn open() -> Result<Self, Errno> {
        // SAFETY: the descriptor is used for memory that a region owns alone.
        match unsafe { userfaultfd(flags()) } {
            Ok(descriptor) => Self::begun(descriptor),
            Err(errno) => Self::of_device().map_err(|_| errno),
        }
    }

    /// By the device.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_device() -> Result<Self, Errno> {
        let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        // SAFETY: `NewDescriptor` says what the opcode takes and gives.
        Self::begun(unsafe { ioctl(&device, NewDescriptor(flags())) }?)
    }

    fn begun(descriptor: OwnedFd) -> Result<Self, Errno> {
        let mut arguments = ApiArguments {
            api: API,
            features: 0,
            ioctls: 0,
        };
        // SAFETY: the opcode's argument is `struct uffdio_api`.
        unsafe { ioctl(&descriptor, Updater::<IOCTL_API, _>::new(&mut arguments)) }?;
        Ok(Self(descriptor))
    }

    /// Watches a map of the region.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(&self, start: u64, bytes: usize) -> Result<(), Errno> {
        let mut arguments = RegisterArguments {
            range: RangeArguments {
                start,
                bytes: bytes as u64,
            },
            mode: MODE_MISSING,
            ioctls: 0,
        };
        // SAFETY: the opcode's argument is `struct uffdio_register`; the range is a map of the region's own.
        unsafe { ioctl(&self.0, Updater::<IOCTL_REGISTER, _>::new(&mut arguments)) }
    }

    /// Gives pages their content, and wakes the threads that wait for them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn place(&self, start: u64, bytes: &[u8]) -> Result<(), Errno> {
        let mut done = 0;
        while done < bytes.len() {
            let mut arguments = CopyArguments {
                to: start + done as u64,
                from: bytes[done..].as_ptr().addr() as u64,
                bytes: (bytes.len() - done) as u64,
                mode: 0,
                copied: 0,
            };
            // SAFETY: the opcode's argument is `struct uffdio_copy`; it writes to pages of the region's map
            // only, those that are not there.
            match unsafe { ioctl(&self.0, Updater::<IOCTL_COPY, _>::new(&mut arguments)) } {
                Ok(()) => return Ok(()),
                // Interrupted: the rest once more.
                Err(Errno::AGAIN | Errno::INTR) => done += usize::try_from(arguments.copied).unwrap_or(0),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Wakes the threads that wait for pages of a range, which are there.
    pub fn wake(&self, start: u64, bytes: usize) {
        let mut arguments = RangeArguments {
            start,
            bytes: bytes as u64,
        };
        // SAFETY: the opcode's argument is `struct uffdio_range`.
        let woken = unsafe { ioctl(&self.0, Updater::<IOCTL_WAKE, _>::new(&mut arguments)) };
        debug_assert!(woken.is_ok());
    }

    /// Readable when a thread waits for a page.
    pub fn asked(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// The address that a thread waits for; none if its fault was answered meanwhile.
    ///
    /// # Errors
    /// The kernel's.
    pub fn next(&self) -> Result<Option<usize>, Errno> {
        let mut message = [0u8; MESSAGE_BYTES];
        match rustix::io::read(&self.0, &mut message) {
            Ok(_) if message[0] == EVENT_PAGE_FAULT => {
                let mut address = [0; 8];
                address.copy_from_slice(&message[ADDRESS_BYTES]);
                Ok(Some(u64::from_ne_bytes(address) as usize))
            }
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }
}
