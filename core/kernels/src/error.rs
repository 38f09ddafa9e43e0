//! Values and sizes that kernels refuse.

/// `Result` of functions that take a root of unity.
pub type Result<T> = std::result::Result<T, RootOfUnityError>;

/// A value that is not a primitive root of unity of the needed order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{omega} is not a primitive root of unity of order 2^{log_n}")]
pub struct RootOfUnityError {
    /// The value.
    pub omega: String,
    /// log2 of the order.
    pub log_n: u32,
}

/// A workspace of a sum that is too small for its smallest configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a sum over {columns} columns with {threads} threads needs at least {needed_bytes} bytes, {limit_bytes} are given"
)]
pub struct WorkspaceError {
    /// Columns of scalars.
    pub columns: usize,
    /// Threads.
    pub threads: usize,
    /// Bytes of the smallest configuration.
    pub needed_bytes: u64,
    /// The given bytes.
    pub limit_bytes: u64,
}
