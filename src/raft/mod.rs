//! The raft room.
