//! Words between ranks beside their messages: "I give up", and "farewell".
//!
//! In: a word to say. Out: the words of others, as soon as some exchange looks. Words have a tag of their
//! own, and a look takes them from any rank. They are short enough to be on their way at once, also to a rank
//! that is at work.

use std::time::{Duration, Instant};

use ferrompi::{Communicator, Result, Source, Tag};
use spillproof_ranks::{REASON_BYTES_MAX, bounded_reason};

use crate::request::Request;

/// The tag of words.
const TAG: i32 = 2;

const GIVES_UP: u8 = 0;
const FAREWELL: u8 = 1;

/// How long saying a word may take, with all peers.
const SAYING: Duration = Duration::from_millis(200);

/// A rank that gave up, and its reason.
#[derive(Clone, Debug)]
pub(crate) struct GivenUp {
    pub peer: usize,
    pub reason: String,
}

/// A word to all peers.
pub(crate) enum Word<'a> {
    GiveUp(&'a str),
    Farewell,
}

/// What other ranks have said so far.
#[derive(Debug)]
pub(crate) struct Heard {
    /// The first rank that gave up.
    pub given_up: Option<GivenUp>,
    /// Ranks that are about to end after an error.
    pub farewells: Vec<bool>,
}

impl Heard {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            given_up: None,
            farewells: vec![false; size],
        }
    }

    /// Takes all words that have come.
    pub(crate) fn listen(&mut self, world: &Communicator) -> Result<()> {
        while let Some(status) = world.iprobe::<u8>(Source::Any, Tag::Value(TAG))? {
            let mut word = vec![0; status.count.unwrap_or(0).max(1)];
            // It has come whole: words are shorter than what MPI sends in one go.
            world.recv(&mut word, status.source, status.tag)?;
            let Source::Rank(peer) = status.source else {
                continue;
            };
            let peer = usize::try_from(peer).unwrap_or_default();
            match word[0] {
                GIVES_UP if self.given_up.is_none() => {
                    self.given_up = Some(GivenUp {
                        peer,
                        reason: String::from_utf8_lossy(&word[1..]).into_owned(),
                    });
                }
                FAREWELL => {
                    if let Some(farewell) = self.farewells.get_mut(peer) {
                        *farewell = true;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Says a word to all peers, and does not wait for one that takes none. Whether all of it is on its way.
pub(crate) fn say(world: &Communicator, word: &Word<'_>) -> bool {
    let mut bytes = Vec::with_capacity(1 + REASON_BYTES_MAX);
    match word {
        Word::GiveUp(reason) => {
            bytes.push(GIVES_UP);
            bytes.extend_from_slice(bounded_reason(reason).as_bytes());
        }
        Word::Farewell => bytes.push(FAREWELL),
    }
    let peers = (0..world.size()).filter(|peer| *peer != world.rank());
    let begun: Vec<Result<Request>> = peers
        .map(|peer| Request::send(world, bytes.clone(), peer, TAG))
        .collect();
    let mut is_whole = begun.iter().all(Result::is_ok);
    let mut requests: Vec<Request> = begun.into_iter().flatten().collect();
    let deadline = Instant::now() + SAYING;
    loop {
        requests.retain_mut(|request| match request.test() {
            Ok(done) => done.is_none(),
            Err(_) => {
                is_whole = false;
                false
            }
        });
        if requests.is_empty() {
            return is_whole;
        }
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::yield_now();
    }
}
