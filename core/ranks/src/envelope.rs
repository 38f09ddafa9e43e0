//! The envelope of a message: 128 bytes in front of the payload, little-endian.
//!
//! ```text
//!  offset  bytes  field
//!       0      8  magic "spillrnk"
//!       8      2  version of this layout
//!      10      2  kind: the call that the message belongs to
//!      12      4  length of the payload in bytes
//!      16      4  from
//!      20      4  to
//!      24      8  sequence number, counted for each ordered pair of ranks from 0
//!      32      8  bytes of the same value that follow in later messages
//!      40     32  job
//!      72     24  phase: the first 24 bytes of its name, filled up with zeros
//!      96     32  BLAKE3, keyed by the job, of the 96 bytes above and the payload
//! ```
//!
//! In: a payload in its place behind the envelope. Out: the same bytes sealed, or a [`Difference`] that names
//! the first field that is not as it should be. The digest finds what chance does to a message. It keeps out
//! a forger only as far as the job is a secret of the ranks.

use crate::error::RankError;

/// Bytes of an envelope.
pub const ENVELOPE_BYTES: usize = 128;

const MAGIC: [u8; 8] = *b"spillrnk";
pub(crate) const VERSION: u16 = 1;
const PHASE_BYTES: usize = 24;
/// Where the digest is; all before it is under it.
const DIGEST_AT: usize = ENVELOPE_BYTES - 32;

/// The call that a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    Handshake = 1,
    Broadcast,
    Gather,
    Scatter,
    Reduce,
    Barrier,
    AllToAll,
    GatherStream,
    ScatterStream,
}

impl Kind {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Handshake, "handshake"),
        (Self::Broadcast, "broadcast"),
        (Self::Gather, "gather"),
        (Self::Scatter, "scatter"),
        (Self::Reduce, "reduce"),
        (Self::Barrier, "barrier"),
        (Self::AllToAll, "all-to-all"),
        (Self::GatherStream, "streamed gather"),
        (Self::ScatterStream, "streamed scatter"),
    ];

    fn name(code: u16) -> String {
        let known = Self::ALL.iter().find(|(kind, _)| *kind as u16 == code);
        known.map_or_else(|| format!("unknown ({code})"), |(_, name)| (*name).to_owned())
    }
}

/// What an envelope says beside the job, the length and the digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub kind: Kind,
    pub from: usize,
    pub to: usize,
    pub sequence: u64,
    pub phase: &'static str,
}

/// A message that was found to be the one that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub payload_bytes: usize,
    pub remaining_bytes: u64,
}

/// A field that is not as it should be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub field: &'static str,
    pub expected: String,
    pub found: String,
}

impl Difference {
    fn new(field: &'static str, expected: impl ToString, found: impl ToString) -> Self {
        Self {
            field,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// The error of `rank` about a message from `peer`.
    pub(crate) fn error(self, rank: usize, phase: &'static str, peer: usize) -> RankError {
        let Self {
            field,
            expected,
            found,
        } = self;
        match field {
            "version" | "job" | "number of ranks" | "piece" => RankError::Different {
                rank,
                phase,
                peer,
                field,
                expected,
                found,
            },
            _ => RankError::Damaged {
                rank,
                phase,
                peer,
                field,
                expected,
                found,
            },
        }
    }
}

impl Envelope {
    /// Writes the envelope of a message whose payload is already in its place. `message` holds at least
    /// [`ENVELOPE_BYTES`].
    pub(crate) fn seal(&self, job: &[u8; 32], remaining_bytes: u64, message: &mut [u8]) {
        let payload_bytes = message.len() - ENVELOPE_BYTES;
        message[..8].copy_from_slice(&MAGIC);
        message[8..10].copy_from_slice(&VERSION.to_le_bytes());
        message[10..12].copy_from_slice(&(self.kind as u16).to_le_bytes());
        message[12..16].copy_from_slice(&(payload_bytes as u32).to_le_bytes());
        message[16..20].copy_from_slice(&(self.from as u32).to_le_bytes());
        message[20..24].copy_from_slice(&(self.to as u32).to_le_bytes());
        message[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        message[32..40].copy_from_slice(&remaining_bytes.to_le_bytes());
        message[40..72].copy_from_slice(job);
        message[72..DIGEST_AT].copy_from_slice(&phase_bytes(self.phase));
        let digest = digest(job, message);
        message[DIGEST_AT..ENVELOPE_BYTES].copy_from_slice(&digest);
    }

    /// Checks a message against the one that is due. Fields that tell another program or job come first, then
    /// length and digest, then those in which a whole message may differ from the one that is due.
    pub(crate) fn open(&self, job: &[u8; 32], message: &[u8]) -> Result<Opened, Difference> {
        if message.len() < ENVELOPE_BYTES {
            return Err(Difference::new(
                "length",
                format!("at least {ENVELOPE_BYTES}"),
                message.len(),
            ));
        }
        same_bytes("magic", &MAGIC, &message[..8])?;
        same("version", VERSION, u16_at(message, 8))?;
        same_bytes("job", job, &message[40..72])?;
        let payload_bytes = message.len() - ENVELOPE_BYTES;
        same("length", u64::from(u32_at(message, 12)), payload_bytes as u64)?;
        same_bytes(
            "digest",
            &digest(job, message),
            &message[DIGEST_AT..ENVELOPE_BYTES],
        )?;
        same("sender", self.from as u64, u64::from(u32_at(message, 16)))?;
        same("receiver", self.to as u64, u64::from(u32_at(message, 20)))?;
        same("sequence number", self.sequence, u64_at(message, 24))?;
        let phase = phase_bytes(self.phase);
        same("phase", phase_name(&phase), phase_name(&message[72..DIGEST_AT]))?;
        same(
            "kind",
            Kind::name(self.kind as u16),
            Kind::name(u16_at(message, 10)),
        )?;
        Ok(Opened {
            payload_bytes,
            remaining_bytes: u64_at(message, 32),
        })
    }
}

fn same<T: PartialEq + ToString>(field: &'static str, expected: T, found: T) -> Result<(), Difference> {
    if expected == found {
        Ok(())
    } else {
        Err(Difference::new(field, expected, found))
    }
}

/// The same of bytes, of which an error shows the beginning.
fn same_bytes(field: &'static str, expected: &[u8], found: &[u8]) -> Result<(), Difference> {
    if expected == found {
        Ok(())
    } else {
        Err(Difference::new(field, hex(expected), hex(found)))
    }
}

fn digest(job: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(job);
    hasher.update(&message[..DIGEST_AT]);
    hasher.update(&message[ENVELOPE_BYTES..]);
    *hasher.finalize().as_bytes()
}

fn phase_bytes(phase: &str) -> [u8; PHASE_BYTES] {
    let mut bytes = [0; PHASE_BYTES];
    let length = phase.len().min(PHASE_BYTES);
    bytes[..length].copy_from_slice(&phase.as_bytes()[..length]);
    bytes
}

fn phase_name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    format!("\"{}\"", String::from_utf8_lossy(&bytes[..end]))
}

/// The first eight bytes, which tell two digests apart.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn array_at<const N: usize>(message: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&message[at..at + N]);
    bytes
}

fn u16_at(message: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(message, at))
}

fn u32_at(message: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(message, at))
}

fn u64_at(message: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(message, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: [u8; 32] = [7; 32];
    const ENVELOPE: Envelope = Envelope {
        kind: Kind::AllToAll,
        from: 1,
        to: 2,
        sequence: 5,
        phase: "a phase with a long name, longer than the field",
    };

    fn message(payload: &[u8]) -> Vec<u8> {
        let mut message = vec![0; ENVELOPE_BYTES];
        message.extend_from_slice(payload);
        ENVELOPE.seal(&JOB, 9, &mut message);
        message
    }

    #[test]
    fn what_was_sealed_opens() {
        let opened = ENVELOPE.open(&JOB, &message(b"payload")).unwrap();
        assert_eq!(
            opened,
            Opened {
                payload_bytes: 7,
                remaining_bytes: 9
            }
        );
        assert!(ENVELOPE.open(&JOB, &message(b"")).is_ok());
    }

    #[test]
    fn every_bit_counts() {
        let sealed = message(b"payload");
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ENVELOPE.open(&JOB, &flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_length_counts() {
        let sealed = message(b"payload");
        for length in 0..sealed.len() {
            let found = ENVELOPE.open(&JOB, &sealed[..length]).unwrap_err();
            assert_eq!(found.field, "length", "{length}");
        }
    }

    #[test]
    fn fields_are_named() {
        let sealed = message(b"payload");
        let field = |due: Envelope, job: &[u8; 32]| due.open(job, &sealed).unwrap_err().field;
        assert_eq!(field(ENVELOPE, &[8; 32]), "job");
        assert_eq!(field(Envelope { from: 0, ..ENVELOPE }, &JOB), "sender");
        assert_eq!(field(Envelope { to: 0, ..ENVELOPE }, &JOB), "receiver");
        assert_eq!(
            field(
                Envelope {
                    sequence: 4,
                    ..ENVELOPE
                },
                &JOB
            ),
            "sequence number"
        );
        assert_eq!(
            field(
                Envelope {
                    phase: "another",
                    ..ENVELOPE
                },
                &JOB
            ),
            "phase"
        );
        let other = Envelope {
            kind: Kind::Barrier,
            ..ENVELOPE
        };
        let found = other.open(&JOB, &sealed).unwrap_err();
        assert_eq!(
            (found.expected.as_str(), found.found.as_str()),
            ("barrier", "all-to-all")
        );
    }

    #[test]
    fn kinds_have_names() {
        for (kind, name) in Kind::ALL {
            assert_eq!(Kind::name(kind as u16), name);
        }
        assert_eq!(Kind::name(99), "unknown (99)");
    }
}
