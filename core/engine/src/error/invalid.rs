//! Mistakes in a call or a setting, each with the values that do not fit together.

use std::path::PathBuf;

use spillproof_kernels::error::RootOfUnityError;

/// A mistake in a call or a setting.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// An index that does not exist.
    #[error("there is no {what} {index}: {count} exist, numbered from 0")]
    Index {
        /// The indexed objects, in the singular.
        what: &'static str,
        /// The index.
        index: u64,
        /// The number of objects.
        count: u64,
    },
    /// A range that is not inside of its object.
    #[error("{what}: the range {start}..{end} is not inside of 0..{len}")]
    OutOfRange {
        /// The object.
        what: String,
        /// The start of the range.
        start: u64,
        /// The end of the range.
        end: u64,
        /// The length of the object.
        len: u64,
    },
    /// A contribution to a key that cannot be made.
    #[error("a contribution's {what} is {given}: {remedy}")]
    Contribution {
        /// The part of it.
        what: &'static str,
        /// The given one.
        given: String,
        /// The right one.
        remedy: &'static str,
    },
    /// A region that is not inside of its column.
    #[error("{region} is not inside of its column, which has {len} elements")]
    Region {
        /// The region.
        region: String,
        /// The length of the column.
        len: u64,
    },
    /// A region that is not one run of neighbouring elements, where only such a run is possible.
    #[error("{region} is not a span")]
    NotASpan {
        /// The region.
        region: String,
    },
    /// A number of things that differs from the only right one.
    #[error("{what}: {given} given, {expected} expected")]
    Length {
        /// The things, in the plural.
        what: String,
        /// The number of them.
        given: u64,
        /// The right number.
        expected: u64,
    },
    /// More things than there is room for.
    #[error("{what}: {given} given, at most {limit} possible")]
    TooLong {
        /// The things, in the plural.
        what: String,
        /// The number of them.
        given: u64,
        /// The largest possible number.
        limit: u64,
    },
    /// A lookup's input has a value that its table has not.
    #[error("a value of a lookup's input is not in its table: the witness does not satisfy the circuit")]
    NotInTable,
    /// A witness that does not satisfy the constraints of its circuit, or does not belong to the key.
    #[error(
        "the proof does not verify: the witness does not satisfy the circuit of this key, or belongs to another circuit"
    )]
    NotSatisfied,
    /// A file over another curve than the one that is asked for.
    #[error("{file} is over {curve}, and {expected} is expected: a key and its witness are over one curve")]
    OtherCurve {
        /// The file.
        file: String,
        /// Its curve.
        curve: String,
        /// The curve that is asked for.
        expected: String,
    },
    /// A dealt key that another number of ranks reads than it is for.
    #[error(
        "{file} is dealt to {dealt} ranks, and is read by {given}: start {dealt} ranks (mpirun -n {dealt}), or import the key \
         again on {given}"
    )]
    OtherRanks {
        /// The file.
        file: String,
        /// The number of ranks that it is for.
        dealt: usize,
        /// The number of ranks that read it.
        given: usize,
    },
    /// A key, or a part of one, for other shares than those of a proof.
    #[error("{what}: the key is for {dealt}, and the proof is by {given}: {remedy}")]
    OtherShares {
        /// What differs.
        what: &'static str,
        /// That of the key.
        dealt: String,
        /// That of the proof.
        given: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A witness without the constant one.
    #[error(
        "{witness}: the first value of a witness is one, and this one's is not: the file is no witness, or of another program"
    )]
    WitnessStart {
        /// The file of the witness.
        witness: String,
    },
    /// A challenge has no inverse.
    #[error("a challenge of the transcript is zero: make the proof again, with other random values")]
    ZeroChallenge,
    /// Fewer things than are needed.
    #[error("{what}: {given} given, at least {needed} needed")]
    TooShort {
        /// The things, in the plural.
        what: &'static str,
        /// The number of them.
        given: u64,
        /// The smallest possible number.
        needed: u64,
    },
    /// Nothing, where at least one thing is needed.
    #[error("{what}: none given, at least one needed")]
    Empty {
        /// The things, in the plural.
        what: &'static str,
    },
    /// A number of things that is not a power of two, or too large a power.
    #[error("{what}: {given} given; the number must be a power of two, at most 2^{log_limit}")]
    PowerOfTwo {
        /// The things, in the plural.
        what: &'static str,
        /// The number of them.
        given: u64,
        /// log2 of the largest possible number.
        log_limit: u32,
    },
    /// More elements than the address space has room for.
    #[error("{what}: {elements} elements of {element_bytes} bytes do not fit in the address space")]
    AddressSpace {
        /// The purpose of the memory.
        what: String,
        /// The number of elements.
        elements: usize,
        /// The bytes of an element.
        element_bytes: usize,
    },
    /// A transfer that starts or ends inside of a frame.
    #[error(
        "{what}: element {element} is inside of a frame, not at its start; a frame has {frame_elements} elements"
    )]
    InsideFrame {
        /// The operation.
        what: &'static str,
        /// The first element, or the one after the last.
        element: u64,
        /// The elements of a frame.
        frame_elements: u64,
    },
    /// Elements of which some have bits above the largest value of their field.
    #[error(
        "{column}: an element has bits that no value of its field has; check the values where they come from"
    )]
    UsedSpareBits {
        /// The column that was written.
        column: String,
    },
    /// Elements that fill their bytes, where frames have to carry their own tags.
    #[error(
        "{column}: these elements leave no bits free for the tags of their frames; columns of scalars do"
    )]
    NoSpareBits {
        /// The file of the column.
        column: String,
    },
    /// A frame of a scratch file that was written before: each is encrypted once.
    #[error("{column}: frame {frame} was written before; write every element once")]
    WrittenBefore {
        /// The column that was written.
        column: String,
        /// The frame.
        frame: u64,
    },
    /// A size of frames that does not suit the disk or the elements.
    #[error(
        "frames of {frame_bytes} bytes: the size must be a multiple of 4096 and of the {element_bytes} bytes of an element"
    )]
    FrameBytes {
        /// The bytes of a frame.
        frame_bytes: usize,
        /// The bytes of an element.
        element_bytes: usize,
    },
    /// Elements of another size.
    #[error("{what}: an element has {given} bytes, and {expected} bytes are expected")]
    ElementBytes {
        /// The object.
        what: String,
        /// The bytes of an element of the object.
        given: usize,
        /// The bytes of an element of the expected type.
        expected: usize,
    },
    /// A type of elements that cannot be read in place from a file.
    #[error(
        "elements of {memory_bytes} bytes in memory and {file_bytes} bytes in a file cannot be mapped: both forms must be equal, \
         and the machine little-endian; read the column instead"
    )]
    Unmappable {
        /// The bytes of an element in memory.
        memory_bytes: usize,
        /// The bytes of an element in a file.
        file_bytes: usize,
    },
    /// A column that is finished before all of it is written.
    #[error("{column}: {written} of {len} elements were written")]
    Unwritten {
        /// The column.
        column: String,
        /// The number of written elements.
        written: u64,
        /// The length of the column.
        len: u64,
    },
    /// A container that is published before all of it is written.
    #[error("{container}: frame {frame} of {frames} was never written")]
    UnwrittenFrame {
        /// The container.
        container: String,
        /// The frame.
        frame: u64,
        /// The number of frames.
        frames: u64,
    },
    /// An access to values of a dry run.
    #[error("{column} belongs to a dry run, which has no values")]
    DryRun {
        /// The column.
        column: String,
    },
    /// A column that is declared as written, though it does not belong to a dry run.
    #[error("{column} does not belong to a dry run: write its values")]
    NotADryRun {
        /// The column.
        column: String,
    },
    /// A group that a bundle does not have.
    #[error("the bundle has no group {group}: name all groups when the bundle is created")]
    UnknownGroup {
        /// The label of the group.
        group: String,
    },
    /// A section that a file does not have.
    #[error("{file} has no section \"{section}\"")]
    MissingSection {
        /// The file.
        file: String,
        /// The label of the section.
        section: String,
    },
    /// A container with another content than the expected one.
    #[error("{file} is a {kind} over {curve}, and a {expected} is expected: name another file")]
    AnotherKind {
        /// The file.
        file: String,
        /// The expected kind and curve.
        expected: String,
        /// The kind of its content.
        kind: String,
        /// The curve.
        curve: String,
    },
    /// A part of a transfer that is not inside of its buffer and file, or not aligned.
    #[error(
        "segment {index} of a transfer with {file} has {bytes} bytes at file offset {file_offset} and buffer offset \
         {buffer_offset}: all three must be multiples of {alignment}, and the segment must be inside of the file and of the \
         buffer, which has {buffer_bytes} bytes"
    )]
    Segment {
        /// The index of the segment.
        index: usize,
        /// The file.
        file: String,
        /// The length of the segment.
        bytes: usize,
        /// Its offset in the file.
        file_offset: u64,
        /// Its offset in the buffer.
        buffer_offset: usize,
        /// The length of the buffer.
        buffer_bytes: usize,
        /// The alignment that the file needs.
        alignment: usize,
    },
    /// Segments to be read that share bytes of the buffer.
    #[error("{file}: two segments of a read share the byte at offset {buffer_offset} of the buffer")]
    OverlappingSegments {
        /// The file.
        file: String,
        /// The first such offset in the buffer.
        buffer_offset: usize,
    },
    /// A transfer whose buffer was given back twice.
    #[error("the buffer of a transfer was taken twice")]
    BufferTaken,
    /// A name that a file is to get belongs to something else.
    #[error("`{path}` is {kind}, which a file would replace: name a file, or remove it first")]
    NotAFile {
        /// The path.
        path: String,
        /// What it is, with an article.
        kind: &'static str,
    },
    /// A file that is to be read is none.
    #[error("`{path}` is {kind}, and its bytes are read in any order: save them to a file, and name that")]
    NotReadable {
        /// The path.
        path: String,
        /// What it is, with an article.
        kind: &'static str,
    },
    /// A path that does not end in a file name.
    #[error("`{path}` does not end in the name of a file")]
    NotAFileName {
        /// The path.
        path: String,
    },
    /// No known size of the machine's memory.
    #[error(
        "the memory budget `auto`: neither a cgroup limit nor MemAvailable can be read; set the budget to a number of bytes"
    )]
    UnknownMemory,
    /// A machine with too little memory for a budget of its own choice.
    #[error(
        "the memory budget `auto`: {available_bytes} bytes are available, and {margin_bytes} bytes are left to other uses; set \
         the budget to a number of bytes"
    )]
    LittleMemory {
        /// The available bytes.
        available_bytes: u64,
        /// The bytes that `auto` leaves to other uses.
        margin_bytes: u64,
    },
    /// A limit on the process that leaves no budget.
    #[error(
        "the limit of {limit_bytes} bytes on the process leaves no budget: {beside_bytes} bytes are for the program's pages, threads and heap; \
         raise the limit"
    )]
    LittleLimit {
        /// The limit.
        limit_bytes: u64,
        /// What is not for leases.
        beside_bytes: u64,
    },
    /// A limit that is to be the control group's, where there is none.
    #[error(
        "the limit `auto`: no control group limits the memory of this process; set the limit to a number of bytes"
    )]
    NoHardLimit,
    /// No memory budget of possible size is enough.
    #[error("a memory budget of {limit_bytes} bytes, the largest possible one, is not enough for the plan")]
    NoBudget {
        /// The largest possible budget.
        limit_bytes: u64,
    },
    /// Zero, where an inverse is needed.
    #[error("{what} is 0, and must have an inverse")]
    Zero {
        /// The value.
        what: &'static str,
    },
    /// More rows than the field has roots of unity for.
    #[error(
        "2^{log_rows} rows: with constraints of this degree their quotient needs a domain of 2^{log_extended} points, and the field has \
         domains of up to 2^{two_adicity}; at most 2^{} rows",
        two_adicity - (log_extended - log_rows)
    )]
    TooManyRows {
        /// log2 of the rows.
        log_rows: u32,
        /// log2 of the points of the quotient's domain.
        log_extended: u32,
        /// log2 of the largest domain.
        two_adicity: u32,
    },
    /// A value that is not a primitive root of unity of the needed order.
    #[error(transparent)]
    RootOfUnity(#[from] RootOfUnityError),
    /// A root of unity of the extended domain that does not belong to the one of the domain.
    #[error(
        "{extended_omega} is not a root of order 2^{log_cosets} of omega, the root of unity of the domain"
    )]
    ExtendedRoot {
        /// The root of unity of the extended domain.
        extended_omega: String,
        /// log2 of the number of cosets.
        log_cosets: u32,
    },
    /// A domain that is larger than the field allows.
    #[error("a domain of 2^{log_n} points: the scalar field has domains of at most 2^{log_limit} points")]
    DomainSize {
        /// log2 of the number of points.
        log_n: u32,
        /// log2 of the largest possible number.
        log_limit: u32,
    },
    /// A tile that is too small for a transform in two passes.
    #[error(
        "a tile of 2^{log_tile} elements is too small for a transform of 2^{log_n}: it needs at least 2^{log_needed}"
    )]
    Tile {
        /// log2 of the elements of the tile.
        log_tile: u32,
        /// log2 of the elements of the transform.
        log_n: u32,
        /// log2 of the smallest possible tile.
        log_needed: u32,
    },
    /// Cosets and pieces of a quotient that do not fit together.
    #[error(
        "a quotient of {pieces} pieces of 2^{log_n} coefficients from 2^{log_cosets} cosets: 2^40 coefficients, 2^16 cosets, and \
         a piece for each coset are the largest possible numbers"
    )]
    QuotientShape {
        /// The number of pieces.
        pieces: usize,
        /// log2 of the coefficients of a piece.
        log_n: u32,
        /// log2 of the number of cosets.
        log_cosets: u32,
    },
    /// A sort with runs or chunks of impossible sizes.
    #[error(
        "a sort in runs of {run} elements and chunks of {run_chunk}, {merge_chunk} and {write_chunk}: a chunk must not be empty, \
         and a run must consist of whole chunks and of whole frames of {frame_elements} elements"
    )]
    SortPlan {
        /// The elements of a run.
        run: u64,
        /// The elements of a chunk of a run.
        run_chunk: u64,
        /// The elements that are read at once of each run.
        merge_chunk: u64,
        /// The elements that are written at once.
        write_chunk: u64,
        /// The elements of a frame.
        frame_elements: u64,
    },
    /// More values for the last rows than there are rows to spare.
    #[error("{what}: {tail} values for the last of {rows} rows; at least one row must be left")]
    Tail {
        /// The column.
        what: &'static str,
        /// The number of values.
        tail: u64,
        /// The number of rows.
        rows: u64,
    },
    /// An SRS with fewer points than are needed.
    #[error("{srs} has points for k = {limit} at most, and k = {k} is asked for")]
    SrsSize {
        /// The SRS.
        srs: String,
        /// The k that was asked for.
        k: u32,
        /// The largest possible k.
        limit: u32,
    },
    /// An SRS without points in the needed form.
    #[error("the SRS has no points in {basis} form: import one that has them")]
    MissingBasis {
        /// The form.
        basis: &'static str,
    },
    /// A secret that does not make an SRS.
    #[error("the secret of an SRS must not be 0 or a point of the domain: choose another secret")]
    Secret,
    /// A request of a compute accelerator for elements that do not exist, or not in this order.
    #[error(
        "a compute accelerator asked for {count} elements from {first} on: they do not exist, or not in this order"
    )]
    AcceleratorElements {
        /// The first element.
        first: u64,
        /// The number of elements.
        count: usize,
    },
    /// An answer of a compute accelerator that is impossible for its job.
    #[error("a compute accelerator gave an impossible answer: {answer}")]
    AcceleratorAnswer {
        /// The answer, and the job.
        answer: String,
    },
    /// A setting that cannot be carried out.
    #[error("{name}: {reason}")]
    Setting {
        /// The setting, such as an environment variable.
        name: &'static str,
        /// The reason, with the value.
        reason: String,
    },
    /// A folder for scratch files that is none.
    #[error("`{}` is no folder{reason}", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
        /// The system's reason, and the remedy.
        reason: String,
    },
    /// No session can be made from environment variables.
    #[error("cannot make a session from environment variables: {reason}")]
    Environment {
        /// The error.
        reason: String,
    },
    /// An error of the proof system that uses the engine.
    #[error("{what}: {reason}")]
    ProofSystem {
        /// The operation.
        what: &'static str,
        /// The error.
        reason: String,
    },
}

impl Invalid {
    /// Refuses an index that is not below `count`.
    ///
    /// # Errors
    /// [`Self::Index`].
    pub fn unless_below(what: &'static str, index: u64, count: u64) -> Result<(), Self> {
        if index < count {
            return Ok(());
        }
        Err(Self::Index { what, index, count })
    }

    /// Refuses another number of things than `expected`.
    ///
    /// # Errors
    /// [`Self::Length`].
    pub fn unless_equal(what: impl Into<String>, given: u64, expected: u64) -> Result<(), Self> {
        if given == expected {
            return Ok(());
        }
        let what = what.into();
        Err(Self::Length {
            what,
            given,
            expected,
        })
    }

    /// Refuses more than `limit` things.
    ///
    /// # Errors
    /// [`Self::TooLong`].
    pub fn unless_at_most(what: impl Into<String>, given: u64, limit: u64) -> Result<(), Self> {
        if given <= limit {
            return Ok(());
        }
        let what = what.into();
        Err(Self::TooLong { what, given, limit })
    }
}
