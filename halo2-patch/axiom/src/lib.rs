//! Compiled in by the build.
