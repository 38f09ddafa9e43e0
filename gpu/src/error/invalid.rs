//! Mistakes in a call or a setting, each with the values that do not fit together.

use spillproof_engine::error::Invalid as Values;

/// A mistake in a call or a setting.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A mistake of a kind that the engine has, too.
    #[error(transparent)]
    Values(#[from] Values),
    /// Bytes that are not whole elements.
    #[error("{what}: {bytes} bytes are not a whole number of elements of {element_bytes} bytes")]
    PartOfAnElement {
        /// The object.
        what: &'static str,
        /// The bytes.
        bytes: u64,
        /// The bytes of an element.
        element_bytes: u64,
    },
    /// Memory of no size, or of more than the address space has.
    #[error("{what}: {bytes} bytes; the size must be positive, and fit in the address space")]
    Size {
        /// The memory.
        what: &'static str,
        /// Its bytes.
        bytes: u64,
    },
    /// Chunks of impossible lengths.
    #[error(
        "chunks of {chunk_bytes} bytes, the first of {first_bytes}, with elements of {element_bytes}: both must be positive \
         multiples of an element, and the first no longer than the others"
    )]
    Chunks {
        /// The bytes of a chunk.
        chunk_bytes: u64,
        /// The bytes of the first chunk.
        first_bytes: u64,
        /// The bytes of an element.
        element_bytes: u64,
    },
    /// An access to a pinned slot during a copy.
    #[error("a copy of the pinned slot is in flight: wait for it before the bytes are used")]
    InFlight,
    /// Slots that the host reads, in memory that it reads slowly.
    #[error("the slots of a download are write-combined, and the host reads them: use a cached pool")]
    WriteCombined,
    /// An allocation without an address.
    #[error("the driver returned a null address for pinned memory without an error")]
    NullAddress,
    /// A job that is staged where another one is.
    #[error("another job is staged in these slots: run it first")]
    Staged,
    /// A copy between devices in a stream of the wrong one.
    #[error(
        "the stream of a copy is of device {stream}, the destination of device {destination}: use a stream of the destination"
    )]
    OtherDevice {
        /// The device of the stream.
        stream: usize,
        /// The device of the destination.
        destination: usize,
    },
    /// A plan that was made for another job.
    #[error("the plan is for {plan}, and the job has {job}: make a plan for the job")]
    OtherPlan {
        /// The job of the plan.
        plan: String,
        /// The job.
        job: String,
    },
    /// A text of kernels that the compiler cannot take.
    #[error("the text of the kernels contains a zero byte")]
    ZeroByte,
    /// More threads than a grid can have, or empty blocks.
    #[error(
        "a grid of {threads} threads in blocks of {threads_per_block}: a grid has at most 2^31 - 1 blocks"
    )]
    Grid {
        /// The number of threads.
        threads: u64,
        /// The threads of a block.
        threads_per_block: u32,
    },
    /// Buffers that are too short for a measurement.
    #[error("the buffers are too short for {threads} threads over {elements} elements")]
    ShortBuffers {
        /// The number of threads.
        threads: u64,
        /// The number of elements.
        elements: u32,
    },
    /// No memory on the host for a measurement.
    #[error("no slots for measured copies: {reason}")]
    NoRoom {
        /// The engine's error.
        reason: String,
    },
    /// An MSM of an impossible shape.
    #[error("an MSM of {points} points cannot have the shape {shape}")]
    MsmShape {
        /// The number of points.
        points: u64,
        /// The shape.
        shape: String,
    },
    /// A tile of a transform of an impossible size.
    #[error("a tile of 2^{log_tile} elements: the size must be from 2^1 to 2^{log_limit}")]
    Tile {
        /// log2 of the elements of the tile.
        log_tile: u32,
        /// log2 of the largest possible number.
        log_limit: u32,
    },
    /// More devices than a transform has rows.
    #[error(
        "a transform of 2^{log_n} elements has fewer rows than 2^{log_devices} devices: use fewer devices"
    )]
    Devices {
        /// log2 of the elements of the transform.
        log_n: u32,
        /// log2 of the number of devices.
        log_devices: u32,
    },
    /// A root of unity other than Plonky3's, which the processor uses.
    #[error("the processor uses Plonky3's root of order 2^{log_n}, not {root}")]
    NotPlonky3s {
        /// The root.
        root: String,
        /// log2 of its order.
        log_n: u32,
    },
    /// A coset of an impossible size.
    #[error("a coset of 2^{log_rows} rows of 2^{log_columns} elements is too large")]
    Coset {
        /// log2 of the number of rows.
        log_rows: u32,
        /// log2 of the elements of a row.
        log_columns: u32,
    },
    /// A query that no input of a quotient covers.
    #[error("no input of the quotient covers rotation {rotation} of column {column}")]
    Query {
        /// The column.
        column: u32,
        /// The rotation.
        rotation: i32,
    },
    /// Rows, tiles or buffers of a program that do not fit together.
    #[error(
        "a constraint program cannot run over {rows} rows in tiles of {tile_rows} with {ring_buffers} buffers"
    )]
    ProgramTiles {
        /// The number of rows.
        rows: u64,
        /// The rows of a tile.
        tile_rows: u64,
        /// The number of device buffers.
        ring_buffers: usize,
    },
    /// A rotation by all rows or more.
    #[error("column {column} is rotated by {rotation}, and has {rows} rows only")]
    Rotation {
        /// The column.
        column: u32,
        /// The rotation.
        rotation: i32,
        /// The number of rows.
        rows: u64,
    },
    /// A column that is not resident in the form that the program reads.
    #[error(
        "the program reads column {column} with {rows} elements of {element_bytes} bytes, and {resident_columns} columns of \
         {resident_rows} elements of {resident_element_bytes} bytes are resident"
    )]
    ResidentColumn {
        /// The column.
        column: u32,
        /// Its elements.
        rows: u64,
        /// The bytes of an element.
        element_bytes: u64,
        /// The number of resident columns.
        resident_columns: usize,
        /// The elements of a resident column.
        resident_rows: u64,
        /// The bytes of an element of a resident column.
        resident_element_bytes: u64,
    },
    /// An instruction that reads what does not exist yet, or at all.
    #[error("instruction {instruction} reads {operand}, which is not written or does not exist")]
    Operand {
        /// The index of the instruction.
        instruction: usize,
        /// The operand.
        operand: String,
    },
    /// An instruction that writes an output twice, or one that does not exist.
    #[error("instruction {instruction} writes {target} a second time or beyond the last one")]
    Target {
        /// The index of the instruction.
        instruction: usize,
        /// The target.
        target: String,
    },
    /// An output of a program that no instruction writes.
    #[error("output {output} of the program is never written")]
    Output {
        /// The output.
        output: usize,
    },
}
