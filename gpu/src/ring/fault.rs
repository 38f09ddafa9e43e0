//! Faults that a ring can have, each one missing wait. Tests inject them: under a driver that runs late a
//! faulty ring must give wrong data, or the test that compares the data shows nothing.

/// The missing wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Fault {
    /// None.
    #[default]
    None,
    /// A slot is filled again while its copy to the device runs.
    #[cfg(test)]
    SlotRefilledEarly,
    /// A buffer is overwritten by the next chunk while a kernel uses it.
    #[cfg(test)]
    BufferOverwrittenEarly,
    /// A kernel starts before its chunk has arrived.
    #[cfg(test)]
    KernelStartsEarly,
    /// The copy back starts before the kernel is done.
    #[cfg(test)]
    CopyBackStartsEarly,
    /// A buffer is overwritten by the next chunk while it is copied back.
    #[cfg(test)]
    BufferOverwrittenBeforeCopyBack,
    /// The sink reads a slot while its copy from the device runs.
    #[cfg(test)]
    SinkReadsEarly,
}
