//! Everything that is tested through the library's public face, in one binary; and the tree itself.

mod codec;
mod scenarios;
mod storage_tool;
mod tidy;
mod trace;
