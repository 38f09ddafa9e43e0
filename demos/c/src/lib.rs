//! spillproof as a C library: `include/spillproof.h` declares it, and says what bytes and errors mean.
//!
//! | module | content |
//! |---|---|
//! | [`functions`] | the functions |
//! | [`types`] | their arguments and results |
//!
//! What is computed, and how, is `spillproof-bindings`' to say; here is what only C needs: handles, pointers,
//! a message for each thread.

pub mod functions;
pub mod types;
