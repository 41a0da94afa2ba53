//! The node room.
