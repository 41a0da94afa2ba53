//! Everything that is tested through the library's public face, in one binary.

mod scenarios;
mod trace;
