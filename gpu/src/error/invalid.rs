//! Mistakes in a call or a setting, each with the values that do not fit together.

use std::borrow::Cow;

use spillproof_engine::error::Invalid as Values;

/// A mistake in a call or a setting.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A mistake of a kind that the engine has, too.
    #[error(transparent)]
    Values(#[from] Values),
    /// Sizes that the object cannot have.
    #[error("{what}: {reason}")]
    Size {
        /// The object.
        what: &'static str,
        /// The sizes, and which are possible.
        reason: String,
    },
    /// A call with an object, or at a time, that does not allow it.
    #[error("{reason}")]
    Call {
        /// The mistake, and what to do.
        reason: Cow<'static, str>,
    },
    /// A plan that was made for another job.
    #[error("the plan is for {plan}, and the job has {job}: make a plan for the job")]
    OtherPlan {
        /// The job of the plan.
        plan: String,
        /// The job.
        job: String,
    },
    /// A constraint program that reads or writes something that does not exist.
    #[error("{place} {fault}")]
    Program {
        /// The instruction, query or output.
        place: String,
        /// What is wrong with it.
        fault: String,
    },
}

impl Invalid {
    /// Bytes that are not whole elements.
    pub(crate) fn part_of_an_element(what: &'static str, bytes: u64, element_bytes: u64) -> Self {
        let reason = format!("{bytes} bytes are not a whole number of elements of {element_bytes} bytes");
        Self::Size { what, reason }
    }

    /// Memory of no bytes, or of more than the address space has.
    pub(crate) fn memory_size(what: &'static str, bytes: u64) -> Self {
        let reason = format!("{bytes} bytes; the size must be positive, and fit in the address space");
        Self::Size { what, reason }
    }

    /// A call that is not allowed, for a reason that also says what to do.
    pub(crate) fn call(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Call {
            reason: reason.into(),
        }
    }
}
