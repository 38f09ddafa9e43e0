//! Errors of starting and ending MPI. What goes wrong between ranks is a `TransportFault`.

/// What can go wrong when MPI is started or ended.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum MpiError {
    /// MPI could not be started.
    #[error(
        "MPI cannot be started: {source}: start the program by mpirun, mpiexec or srun of the MPI that it \
         was built for"
    )]
    Start {
        /// MPI's words.
        source: ferrompi::Error,
    },
    /// MPI lets only one thread call it.
    #[error(
        "MPI gives the thread level {level}, and ranks call it from one thread after the other \
         (MPI_THREAD_SERIALIZED): take an MPI that was built with threads"
    )]
    ThreadLevel {
        /// The level that was given.
        level: &'static str,
    },
    /// The ranks did not come to a good end, so MPI cannot be ended in order.
    #[error("MPI cannot be ended in order, since {reason}")]
    Unfinished {
        /// What is left.
        reason: String,
    },
}
