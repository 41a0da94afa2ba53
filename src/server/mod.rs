//! The server room.
