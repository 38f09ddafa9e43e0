//! Sessions: calls with the same settings share one, and wait for room in its budget.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use napi_derive::napi;
use spillproof_engine::Session;
use spillproof_engine::budget::{ByteSize, ParseSizeError};
use spillproof_engine::error::Invalid;
use spillproof_engine::session::{LIMIT_VARIABLE, MEMORY_VARIABLE, dir_of_environment, variable};

use crate::outcome::Failed;

/// What a call wants of its session. What is missing is the environment's, or `auto`.
#[napi(object)]
pub struct Settings {
    /// The budget: a number of bytes, or a size such as `128MiB`.
    pub memory: Option<String>,
    /// The folder of scratch files.
    pub dir: Option<String>,
    /// Compute threads.
    pub threads: Option<u32>,
}

/// Settings as they are compared.
#[derive(Clone, PartialEq)]
struct Wanted {
    memory: ByteSize,
    /// Of the environment, if the call names no budget.
    limit: Option<ByteSize>,
    dir: PathBuf,
    threads: usize,
}

/// What all environments of the process share.
struct Shared {
    known: Vec<(Wanted, Weak<Session>)>,
    /// The last one, kept for the next call.
    last: Option<Arc<Session>>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared {
    known: Vec::new(),
    last: None,
});

impl Settings {
    /// The session of these settings.
    pub fn session(&self) -> Result<Arc<Session>, Failed> {
        let is_default = self.memory.is_none() && self.dir.is_none() && self.threads.is_none();
        if is_default && let Some(session) = Session::current()? {
            return Ok(session);
        }
        let wanted = self.wanted()?;
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.known.retain(|(_, session)| session.strong_count() > 0);
        let known = shared.known.iter().find(|(known, _)| *known == wanted);
        let session = match known.and_then(|(_, session)| session.upgrade()) {
            Some(session) => session,
            None => {
                let session = Arc::new(wanted.build()?);
                shared.known.push((wanted, Arc::downgrade(&session)));
                session
            }
        };
        let before = shared.last.replace(Arc::clone(&session));
        drop(shared);
        // It may end here, without the lock.
        drop(before);
        Ok(session)
    }

    fn wanted(&self) -> Result<Wanted, Failed> {
        let memory = self.memory.as_deref().map(|text| size("memory budget", text));
        let (memory, limit) = match memory.transpose()? {
            Some(memory) => (memory, None),
            None => (
                of_variable(MEMORY_VARIABLE)?.unwrap_or(ByteSize::Auto),
                of_variable(LIMIT_VARIABLE)?,
            ),
        };
        let dir = match &self.dir {
            Some(dir) => PathBuf::from(dir),
            None => dir_of_environment()?,
        };
        Ok(Wanted {
            memory,
            limit,
            // One that does not exist is refused by the builder.
            dir: dir.canonicalize().unwrap_or(dir),
            threads: self.threads.unwrap_or(0) as usize,
        })
    }
}

impl Wanted {
    fn build(&self) -> Result<Session, Failed> {
        let mut builder = Session::builder().memory(self.memory).dir(&self.dir);
        if let Some(limit) = self.limit {
            builder = builder.limit(limit);
        }
        Ok(builder.threads(self.threads).build()?)
    }
}

fn of_variable(name: &'static str) -> Result<Option<ByteSize>, Failed> {
    let text = variable(name).map(|text| text.to_string_lossy().into_owned());
    text.map(|text| size(name, &text)).transpose()
}

fn size(name: &'static str, text: &str) -> Result<ByteSize, Failed> {
    text.parse().map_err(|error: ParseSizeError| {
        let reason = error.to_string();
        spillproof_engine::Error::from(Invalid::Setting { name, reason }).into()
    })
}
