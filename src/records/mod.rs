//! The records room.
